"""AUTH=jwt: admits callers with a token that the configured issuer signed."""

import hashlib
import json
import logging
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

import jwt
from typing_extensions import override

from recollect.api.auth.access_rules import TokenRules
from recollect.api.auth.admission import INVALID, Credentials
from recollect.api.auth.caller import Caller
from recollect.api.auth.subject import user_of_claim
from recollect.memory.ports.keys import EVERY
from recollect.memory.values.errors import Unauthorized
from recollect.memory.values.scope import is_id

logger = logging.getLogger(__name__)

LEEWAY_SECONDS = 10
"""The tolerated difference between the issuer's clock and this one."""
MOST_TOKEN_CHARACTERS = 16_000


class SigningKeys(Protocol):
    """Provides the keys that check signatures."""

    @abstractmethod
    async def key(self, kid: str | None, algorithm: str) -> jwt.PyJWK | str | None:
        """Return the key of this id for this algorithm; None without one.

        Raises:
            IssuerUnavailable: it cannot be found out now.
        """
        ...


class SharedSecret(SigningKeys):
    """Provides JWT_SECRET, whatever key id the token names."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    @override
    async def key(self, kid: str | None, algorithm: str) -> str:
        return self._secret


class TokenCredentials(Credentials):
    """Checks tokens: signature, times, issuer, audience; the user is `user_claim`, if it has no `admin_claim`."""

    def __init__(self, rules: TokenRules, keys: SigningKeys) -> None:
        self._rules = rules
        self._keys = keys
        self._algorithms = list(rules.accepted)
        self._admin_claims = _splits(rules.admin_claim or "")
        wanted = {"exp": True, "iss": rules.issuer is not None, "aud": rules.audience is not None}
        self._options: Any = {
            "require": [name for name, is_wanted in wanted.items() if is_wanted],
            "verify_aud": rules.audience is not None,
            "verify_sub": False,  # the user's claim is read by `user_of_claim`
            "enforce_minimum_key_length": True,
        }

    @override
    async def caller(self, token: str) -> Caller:
        """Return the token's caller.

        A token with a tenant's claim acts for the tenant's users, an administrator's for any user, any other for the
        user of the claim.
        """
        try:
            claims = await self._claims(token)
        except (jwt.PyJWTError, RecursionError) as error:
            # The token may be nested too deeply, for example. The error's own text may quote the token.
            raise _refused(type(error).__name__) from None
        if (prefix := self._prefix(claims)) is not None:
            # Not the prefix alone: it may be a user's id, who must not be taken for the tenant.
            return Caller(_name(f"{prefix}{EVERY}"), user_prefix=prefix, ends_at=_end(claims))
        user_id = user_of_claim(claims.get(self._rules.user_claim))
        if user_id is None:
            raise _refused("no user")
        name = _name(user_id)
        if any(_says(claims.get(claim), value) for claim, value in self._admin_claims):
            return Caller(name, is_admin=True, ends_at=_end(claims))
        return Caller(name, user_id, ends_at=_end(claims))

    def _prefix(self, claims: Mapping[str, Any]) -> str | None:
        """Return the beginning of the ids of the token's tenant; None where it has none. It administers nothing.

        Raises:
            Unauthorized: the claim is no such beginning.
        """
        said = claims.get(self._rules.user_prefix_claim) if self._rules.user_prefix_claim else None
        if said is None:
            return None
        prefix = said.removesuffix(EVERY) if isinstance(said, str) else None
        if not is_id(prefix):
            raise _refused("no prefix")
        return prefix

    async def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > MOST_TOKEN_CHARACTERS:
            raise jwt.DecodeError
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in self._algorithms:
            raise jwt.InvalidAlgorithmError
        key = await self._keys.key(header.get("kid"), algorithm)
        if key is None:
            raise jwt.InvalidKeyError
        return jwt.decode(
            token,
            key,
            algorithms=self._algorithms,
            issuer=self._rules.issuer,
            audience=self._rules.audience,
            leeway=LEEWAY_SECONDS,
            options=self._options,
        )


@asynccontextmanager
async def open_tokens(rules: TokenRules) -> AsyncGenerator[TokenCredentials]:
    """Provide what checks tokens by these rules. The issuer need not answer yet."""
    if rules.jwks_url is None:
        yield TokenCredentials(rules, SharedSecret(rules.secret or ""))
        return
    from recollect.api.auth.signing_keys import open_issuer

    async with open_issuer(rules.jwks_url, rules.accepted) as keys:
        yield TokenCredentials(rules, keys)


def _refused(reason: str) -> Unauthorized:
    logger.info("token refused", extra={"action": "token_refused", "reason": reason})
    return Unauthorized(INVALID)


def _name(subject: str) -> str:
    """Return what tells the subject apart, without saying it."""
    return f"subject:{hashlib.sha256(subject.encode()).hexdigest()[:32]}"


def _end(claims: Mapping[str, Any]) -> datetime:
    """Return the token's end; one beyond all dates is the last of them. PyJWT has checked that it is a number."""
    try:
        return datetime.fromtimestamp(int(claims["exp"]), UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def _splits(claim: str) -> tuple[tuple[str, str], ...]:
    """Split `name:value` at each of its colons: names like https://example.com/roles contain colons themselves."""
    return tuple((claim[:at], claim[at + 1 :]) for at, char in enumerate(claim) if char == ":")


def _says(claim: object, value: str) -> bool:
    """Tell whether the claim is the value, or a list that contains it."""
    if isinstance(claim, list):
        return any(_says(one, value) for one in claim if not isinstance(one, list))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return claim == value if isinstance(claim, str) else claim is not None and json.dumps(claim) == value
