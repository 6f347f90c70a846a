"""The settings' rules of who may call, and the check that they do not contradict each other."""

from dataclasses import field
from typing import Literal
from urllib.parse import urlsplit

from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SHARED = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Algorithms with a shared secret, and its least length in bytes (RFC 7518, 3.2)."""
_PUBLIC = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})


@frozen
class TokenRules:
    """The rules for a JWT: see the settings JWT_…; empty `algorithms` mean the usual ones."""

    secret: str | None = field(default=None, repr=False)
    jwks_url: str | None = field(default=None, repr=False)
    algorithms: tuple[str, ...] = ()
    issuer: str | None = None
    audience: str | None = None
    user_claim: str = "sub"
    admin_claim: str | None = None
    user_prefix_claim: str | None = None

    @property
    def accepted(self) -> tuple[str, ...]:
        """The signatures that are accepted."""
        return self.algorithms or (("HS256",) if self.secret is not None else ("RS256", "ES256"))


@frozen
class AccessRules:
    """The rules of who may call, and how often; `forwards_keys`: bearer tokens under /v1 are the chat model's."""

    auth: Literal["none", "api_key", "jwt"] = "none"
    tokens: TokenRules = TokenRules()
    forwards_keys: bool = False
    per_minute: int = 0
    burst: int = 0


def check_rules(rules: AccessRules) -> None:
    """Refuse rules that contradict each other.

    Raises:
        ConfigurationError: names the settings.
    """
    if rules.forwards_keys and rules.auth != "none":
        raise ConfigurationError(
            f"FORWARD_API_KEY works with AUTH=none alone: with AUTH={rules.auth} the caller's bearer token is its key "
            "to this service. Unset one of them."
        )
    if rules.auth == "jwt":
        _check_tokens(rules.tokens)


def _check_tokens(rules: TokenRules) -> None:
    if (rules.secret is None) == (rules.jwks_url is None):
        raise ConfigurationError("AUTH=jwt needs either JWT_SECRET or JWT_JWKS_URL; set exactly one of them.")
    if rules.jwks_url is not None and not _is_address(rules.jwks_url):
        raise ConfigurationError(
            "JWT_JWKS_URL is not an address; it should read like https://issuer.example/jwks.json."
        )
    which, known = ("JWT_JWKS_URL", _PUBLIC) if rules.secret is None else ("JWT_SECRET", _SHARED.keys())
    unknown = [name for name in rules.accepted if name not in known]
    if unknown:
        raise ConfigurationError(
            f"JWT_ALGORITHMS: {', '.join(unknown)} cannot be used with {which}; choose from {', '.join(sorted(known))}."
        )
    if rules.secret is not None:
        least = max(_SHARED[name] for name in rules.accepted)
        if len(rules.secret.encode()) < least:
            raise ConfigurationError(f"JWT_SECRET must have at least {least} bytes for {', '.join(rules.accepted)}.")


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
