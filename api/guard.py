"""Keeps out what must not reach the routes: foreign web pages, and bodies over the limit."""

import functools
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import plain_error

MOST_BODY_BYTES = 1_000_000
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class HostGuard:
    """Checks `Host` and `Origin`, so that no web page reaches the memory through a browser, DNS rebinding included.

    Known names are the loopback's, the bound address and ALLOWED_HOSTS; ports do not matter. `names` gives the last two
    when the first request comes. Only paths that begin with one of `paths` are checked: under `langgraph dev` the same
    application also serves LangGraph's own routes, which Studio calls from its own origin.
    """

    def __init__(self, app: ASGIApp, *, names: Callable[[], Iterable[str]], paths: tuple[str, ...]) -> None:
        self.app = app
        self.paths = paths
        self._names = names

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The known names, lower-case."""
        return LOOPBACK_NAMES | {name.lower().strip("[]") for name in self._names()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with 421 foreign_host or 403 foreign_origin."""
        if scope["type"] == "http" and scope["path"].startswith(self.paths):
            headers = Headers(scope=scope)
            if host_name(f"//{headers.get('host', '')}") not in self.names:
                refusal = plain_error(421, "foreign_host", "This Host is not served here; add it to ALLOWED_HOSTS.")
                return await refusal(scope, receive, send)
            origin = headers.get("origin")
            if origin is not None and host_name(origin) not in self.names:
                refusal = plain_error(403, "foreign_origin", "This Origin may not call; add it to ALLOWED_HOSTS.")
                return await refusal(scope, receive, send)
        return await self.app(scope, receive, send)


def host_name(url: str) -> str | None:
    """The lower-case host in a URL (or "//host:port"), without port and brackets; None where there is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


class BodyLimit:
    """Refuses bodies over 1,000,000 bytes with 413 too_large, those sent in chunks without a length too.

    Only for paths that begin with one of `paths`.
    """

    def __init__(self, app: ASGIApp, *, paths: tuple[str, ...]) -> None:
        self.app = app
        self.paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, which is small, and hand it on."""
        bodiless = scope["type"] != "http" or scope["method"] in {"GET", "HEAD", "OPTIONS"}
        if bodiless or not scope["path"].startswith(self.paths):
            return await self.app(scope, receive, send)
        body = await _read(Headers(scope=scope).get("content-length"), receive)
        if body is None:
            refusal = plain_error(413, "too_large", f"The body is over {MOST_BODY_BYTES:,} bytes; send less.")
            return await refusal(scope, receive, send)
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self.app(scope, replay, send)


async def _read(length: str | None, receive: Receive) -> bytes | None:
    """The body, or None where it is over the limit. A client that leaves amid it has sent what it has sent."""
    if length is not None and length.isdigit() and int(length) > MOST_BODY_BYTES:
        return None
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > MOST_BODY_BYTES:
            return None
        parts.append(part)
        more = message["type"] == "http.request" and message.get("more_body", False)
    return b"".join(parts)
