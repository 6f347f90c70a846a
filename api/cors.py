"""CORS: which web pages may call from a browser. None, unless CORS_ORIGINS names them."""

import functools
from collections.abc import Callable, Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from memory.errors import ConfigurationError

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
READABLE = ("Retry-After", "X-Next-Cursor", "Mcp-Session-Id")
"""Headers of answers that a page may read, beside those that every page may."""


class Cors:
    """Answers browsers' questions before a call, and lets the named pages read answers. `origins` is asked once.

    Keys are sent as a header that the page sets itself, so credentials of the browser's own (cookies) are not allowed.
    """

    def __init__(self, app: ASGIApp, *, origins: Callable[[], Collection[str]]) -> None:
        self.app = app
        self._origins = origins

    @functools.cached_property
    def inner(self) -> ASGIApp:
        """The application, behind Starlette's middleware where there are origins."""
        origins = self._origins()
        if not origins:
            return self.app
        return CORSMiddleware(
            self.app, allow_origins=origins, allow_methods=METHODS, allow_headers=["*"], expose_headers=READABLE
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        await self.inner(scope, receive, send)


def check_origins(origins: Collection[str]) -> None:
    """Each is a page's origin as browsers say it.

    Raises:
        ConfigurationError: one is not, or is `*`: every page of the world could then try keys.
    """
    for origin in origins:
        scheme, _, rest = origin.partition("://")
        if scheme not in {"http", "https"} or not rest or any(char in rest for char in "/*@?# "):
            raise ConfigurationError(
                "CORS_ORIGINS names each page's origin, such as https://app.example or http://localhost:3000, without "
                "a path; `*` is not accepted."
            )
