"""Keeps out what must not reach the routes: foreign web pages, and bodies over the limit."""

import functools
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import plain_error
from memory.errors import TooLarge

MOST_BODY_BYTES = 1_000_000
UPLOADS = frozenset({"/api/import", "/api/documents"})
"""Paths whose bodies are streamed to their routes."""
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class HostGuard:
    """Checks `Host` and `Origin`, so that no web page reaches the memory through a browser, DNS rebinding included.

    Known names are the loopback's, the bound address and ALLOWED_HOSTS; ports do not matter. `names` gives the last two
    when the first request comes, and `origins` the pages from elsewhere that may call (CORS_ORIGINS). Only paths that
    begin with one of `paths` are checked: under `langgraph dev` the same application also serves LangGraph's own
    routes, which Studio calls from its own origin.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Callable[[], Iterable[str]],
        origins: Callable[[], Iterable[str]] = tuple,
        paths: tuple[str, ...],
    ) -> None:
        self.app = app
        self.paths = paths
        self._names = names
        self._origins = origins

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The known names, lower-case."""
        return LOOPBACK_NAMES | {name.lower().strip("[]") for name in self._names()}

    @functools.cached_property
    def origins(self) -> frozenset[str]:
        """The pages from elsewhere that may call, lower-case."""
        return frozenset(origin.lower() for origin in self._origins())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with 421 foreign_host or 403 foreign_origin."""
        if scope["type"] == "http" and scope["path"].startswith(self.paths):
            headers = Headers(scope=scope)
            if host_name(f"//{headers.get('host', '')}") not in self.names:
                refusal = plain_error(421, "foreign_host", "This Host is not served here; add it to ALLOWED_HOSTS.")
                return await refusal(scope, receive, send)
            origin = headers.get("origin")
            if origin is not None and host_name(origin) not in self.names and origin not in self.origins:
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

    Bodies of `UPLOADS` may have `most_uploaded` bytes (asked for at each request) and pass as they come: what was taken
    of one that turns out too large stays. Only for paths that begin with one of `paths`.
    """

    def __init__(self, app: ASGIApp, *, paths: tuple[str, ...], most_uploaded: Callable[[], int]) -> None:
        self.app = app
        self.paths = paths
        self.most_uploaded = most_uploaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, which is small, and hand it on; an upload's is handed on in pieces."""
        bodiless = scope["type"] != "http" or scope["method"] in {"GET", "HEAD", "OPTIONS"}
        if bodiless or not scope["path"].startswith(self.paths):
            return await self.app(scope, receive, send)
        is_upload = scope["path"] in UPLOADS
        most = self.most_uploaded() if is_upload else MOST_BODY_BYTES
        if _is_told_too_large(Headers(scope=scope).get("content-length"), most):
            return await plain_error(413, "too_large", _sentence(most))(scope, receive, send)
        if is_upload:
            return await self.app(scope, _counted(receive, most), send)
        body = await _read(receive, most)
        if body is None:
            return await plain_error(413, "too_large", _sentence(most))(scope, receive, send)
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self.app(scope, replay, send)


def _is_told_too_large(length: str | None, most: int) -> bool:
    return length is not None and length.isdigit() and int(length) > most


def _sentence(most: int) -> str:
    return f"The body is over {most:,} bytes; send less."


def _counted(receive: Receive, most: int) -> Receive:
    """`receive` that raises TooLarge once more than `most` bytes have come."""
    size = 0

    async def counting() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise TooLarge(
                f"The body is over {most:,} bytes (MAX_UPLOAD_MB); send it in parts. What came first may be stored; it "
                "is known when it comes again."
            )
        return message

    return counting


async def _read(receive: Receive, most: int) -> bytes | None:
    """The body, or None where it is over the limit. A client that leaves amid it has sent what it has sent."""
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > most:
            return None
        parts.append(part)
        more = message["type"] == "http.request" and message.get("more_body", False)
    return b"".join(parts)
