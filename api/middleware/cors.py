"""CORS: decides which web pages may call from a browser. None, unless CORS_ORIGINS names them."""

import functools
from collections.abc import Callable, Collection

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.memory.values.errors import ConfigurationError

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
READABLE = ("Retry-After", "X-Next-Cursor", "Mcp-Session-Id", "X-Memory-Stored", "ETag")
"""Headers of answers that a page may read, beside the ones that every page may."""


class Cors:
    """Answers browsers' preflight requests, and lets the named pages read answers. `origins` is called once.

    Keys are sent as a header that the page sets itself, so the browser's own credentials (cookies) are not allowed.
    `visitor` is a page that may also read answers from paths which begin with none of `own`.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        origins: Callable[[], Collection[str]],
        own: tuple[str, ...] = ("/",),
        visitor: str | None = None,
    ) -> None:
        self.app = app
        self.own = own
        self.visitor = visitor
        self._origins = origins

    @functools.cached_property
    def inner(self) -> ASGIApp:
        """The application, behind Starlette's middleware where there are origins."""
        return self._open_to(self._origins())

    @functools.cached_property
    def visited(self) -> ASGIApp:
        """The application as the visitor finds it."""
        return self._open_to([*self._origins(), *([self.visitor] if self.visitor else [])])

    def _open_to(self, origins: Collection[str]) -> ASGIApp:
        if not origins:
            return self.app
        return CORSMiddleware(
            self.app, allow_origins=origins, allow_methods=METHODS, allow_headers=["*"], expose_headers=READABLE
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        is_own = scope["type"] != "http" or scope["path"].startswith(self.own)
        await (self.inner if is_own else self.visited)(scope, receive, send)


def check_origins(origins: Collection[str]) -> None:
    """Check that each is a page's origin as browsers send it.

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
