"""A person's visit to the inspector's pages: a cookie alone says whose it is, and opens nothing else."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from recollect.api.auth.access_rules import LOOPBACK_NAMES
from recollect.api.auth.caller import ANYBODY, Caller
from recollect.api.auth.page_sessions import PageSessions
from recollect.memory.values.errors import ConfigurationError, Forbidden
from recollect.memory.values.frozen import frozen

SIGN_IN, SIGN_OUT, CHOOSE_USER = "/sign-in", "/sign-out", "/user"
STATIC = "/static/"
"""Where the pages' style sheet and scripts are, which are the same for everybody."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LIVE = b"recollect-live"
"""The header of requests that a page sends by itself: they do not keep a session open."""

_PAGES = frozenset({"/", SIGN_IN, SIGN_OUT, CHOOSE_USER, "/users", "/operations"})
_BEGINNINGS = ("/users/", "/operations/")
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")


def is_page(path: str) -> bool:
    """Tell whether the path is an address of the inspector."""
    return path in _PAGES or path.startswith(_BEGINNINGS)


class ForeignPage(Forbidden):
    """This page may not act here; open the inspector at its own address (PUBLIC_URL) and act there."""

    code = "foreign_origin"


class InsecureSignIn(Forbidden):
    """Signing in over plain HTTP shows the key to the network; use HTTPS (PUBLIC_URL), or set ALLOW_INSECURE=true."""

    code = "insecure_sign_in"


@frozen
class VisitRules:
    """The settings of visits.

    `is_on`: INSPECTOR. `public_url`: the address that people see, None: the one that they came to. `allows_insecure`:
    also over plain HTTP on other machines.
    """

    is_on: bool = True
    public_url: str | None = None
    allows_insecure: bool = False


@frozen
class Visit:
    """One request's visit. `caller` None: nobody has signed in. `is_new`: the browser does not hold `secret` yet."""

    secret: str
    caller: Caller | None
    is_new: bool = False

    @property
    def token(self) -> str:
        """The token that unsafe requests have to send: only a page that the service gave to this browser knows it."""
        return hmac.new(self.secret.encode(), b"page token", hashlib.sha256).hexdigest()

    def is_own(self, token: str) -> bool:
        """Tell whether a request's token is this visit's."""
        return hmac.compare_digest(self.token.encode(), token.encode(errors="replace"))


class Visits:
    """Finds each request's visit. `sessions` None: without AUTH, where nobody signs in."""

    def __init__(self, rules: VisitRules, sessions: PageSessions | None = None) -> None:
        self.rules = rules
        self.sessions = sessions

    async def enter(self, scope: Mapping[str, Any]) -> Visit:
        """Return the request's visit.

        Where nobody has signed in, a visit proves nothing and is stored nowhere: its secret only ties the pages'
        tokens to a browser.

        Raises:
            ForeignPage: the request would change something, and its Origin is not the inspector's own.
            StoreUnavailable: the sessions cannot be asked now.
        """
        if scope["method"] not in SAFE:
            check_origin(scope, self.rules.public_url)
        secret = read_cookie(scope, self.cookie_name(scope))
        if secret is None or not _SECRET.fullmatch(secret):
            return Visit(secrets.token_urlsafe(32), None if self.sessions else ANYBODY, is_new=True)
        if self.sessions is None:
            return Visit(secret, ANYBODY)
        is_act = all(name != LIVE for name, _ in scope["headers"])
        return Visit(secret, await self.sessions.caller(secret, is_act=is_act))

    def check_transport(self, scope: Mapping[str, Any]) -> None:
        """Check that a key may be typed here: nobody on the way can read it.

        Raises:
            InsecureSignIn: the pages are reached over plain HTTP, from another machine.
        """
        if self.is_secure(scope) or self.rules.allows_insecure:
            return
        if urlsplit(_own(scope, self.rules.public_url)).hostname not in LOOPBACK_NAMES:
            raise InsecureSignIn

    def is_secure(self, scope: Mapping[str, Any]) -> bool:
        """Tell whether people reach the pages over HTTPS."""
        return _scheme(scope, self.rules.public_url) == "https"

    def cookie_name(self, scope: Mapping[str, Any]) -> str:
        """Return the session's cookie; over plain HTTP it names the port, because cookies of all ports are shared."""
        return "__Host-recollect" if self.is_secure(scope) else f"recollect-{_port(scope)}"

    def set_cookie(self, scope: Mapping[str, Any], secret: str) -> bytes:
        """Return the header that gives the browser this secret; an empty one takes it away."""
        end = "" if secret else "; Max-Age=0"
        secure = "; Secure" if self.is_secure(scope) else ""
        return f"{self.cookie_name(scope)}={secret}; HttpOnly; SameSite=Strict; Path=/{secure}{end}".encode("latin-1")


def check_public_url(url: str | None) -> None:
    """Check that PUBLIC_URL is an origin: a scheme, a host, perhaps a port.

    Raises:
        ConfigurationError: it is something else.
    """
    if url is not None and (_origin(url) is None or urlsplit(url).fragment):
        raise ConfigurationError("PUBLIC_URL should read like https://memory.example, without a path.")


def read_cookie(scope: Mapping[str, Any], name: str) -> str | None:
    """Return the cookie's value; None without one, or where two have the name."""
    found: list[str] = []
    for header, value in scope["headers"]:
        if header == b"cookie":
            for part in value.decode("latin-1").split(";"):
                said, _, text = part.strip().partition("=")
                if said == name:
                    found.append(text)
    return found[0] if len(found) == 1 else None


def check_origin(scope: Mapping[str, Any], public_url: str | None) -> None:
    """Check that the request's `Origin` is the inspector's own: its scheme, host and port.

    Raises:
        ForeignPage: it is another one, `null`, or missing.
    """
    origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
    if len(origins) != 1 or (place := _origin(origins[0])) is None or place != _origin(_own(scope, public_url)):
        raise ForeignPage


def _own(scope: Mapping[str, Any], public_url: str | None) -> str:
    """Return the origin that the pages have in the browser."""
    return public_url or f"{scope['scheme']}://{_host(scope)}"


def _host(scope: Mapping[str, Any]) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an origin; None where it is none."""
    try:
        parts = urlsplit(url.lower())
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    if port is None or not parts.hostname or parts.username is not None or parts.query or parts.path not in {"", "/"}:
        return None
    return parts.scheme, parts.hostname, port


def _scheme(scope: Mapping[str, Any], public_url: str | None) -> str:
    return urlsplit(public_url).scheme if public_url else str(scope["scheme"])


def _port(scope: Mapping[str, Any]) -> int:
    server: tuple[str, int | None] = scope.get("server") or ("", None)
    return server[1] or 0
