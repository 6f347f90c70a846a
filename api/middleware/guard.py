"""Refuses requests of foreign web pages, and bodies over the limit."""

import functools
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.api.auth.access_rules import LOOPBACK_NAMES
from recollect.api.errors import plain_error
from recollect.memory.values.errors import TooLarge

BYTES_A_CHARACTER = 12
"""The most bytes of a character: in JSON it may be two escapes of six bytes."""
BYTES_BESIDE = 100_000
"""The bytes that a body may have beside its message."""
UPLOADS = frozenset({"/api/import", "/api/documents"})
"""Paths whose bodies are streamed to their routes."""
_PORTS = {"http": 80, "https": 443}


class HostGuard:
    """Checks `Host` and `Origin`, so that no web page reaches the memory through a browser, DNS rebinding included.

    A `Host` is known if it is the loopback's, the bound address or one of ALLOWED_HOSTS; ports do not matter. An
    `Origin` passes if its host and port are the request's own `Host`, or it is named in CORS_ORIGINS or ALLOWED_HOSTS.
    `names` gives the known names besides the loopback's when the first request comes, `origins` and `hosts` what those
    two settings say. `visitor` is the one foreign page that may call paths which begin with none of `own`: under
    `langgraph dev` the same application also serves LangGraph's routes, which Studio calls from its own page.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        names: Callable[[], Iterable[str]],
        origins: Callable[[], Iterable[str]] = tuple,
        hosts: Callable[[], Iterable[str]] = tuple,
        own: tuple[str, ...] = ("/",),
        visitor: str | None = None,
    ) -> None:
        self.app = app
        self.own = own
        self.visitor = visitor
        self._names = names
        self._origins = origins
        self._hosts = hosts

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The known names, lower-case."""
        return LOOPBACK_NAMES | _plain(self._names())

    @functools.cached_property
    def origins(self) -> frozenset[str]:
        """The pages from elsewhere that may call, lower-case."""
        return frozenset(origin.lower() for origin in self._origins())

    @functools.cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts all of whose pages may call, lower-case."""
        return _plain(self._hosts())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it with 421 foreign_host or 403 foreign_origin."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            if host_name(f"//{host}") not in self.names:
                refusal = plain_error(421, "foreign_host", "This Host is not served here; add it to ALLOWED_HOSTS.")
                return await refusal(scope, receive, send)
            origins = headers.getlist("origin")
            if not (all(self._may_call(one, host, scope["path"]) for one in origins) if origins else _is_own(scope)):
                refusal = plain_error(403, "foreign_origin", "This page may not call; add its Origin to CORS_ORIGINS.")
                return await refusal(scope, receive, send)
        return await self.app(scope, receive, send)

    def _may_call(self, origin: str, host: str, path: str) -> bool:
        origin = origin.lower()
        place = _place(origin, origin)
        if origin in self.origins or host_name(origin) in self.hosts or (place and place == _place(host, origin)):
            return True
        return origin == self.visitor and not path.startswith(self.own)


def _is_own(scope: Scope) -> bool:
    """Tell whether a request without an Origin comes from no foreign page, as far as the browser says.

    Pages send no Origin with links, images and scripts; a link that loads a whole page may be followed.
    """
    headers = Headers(scope=scope)
    if headers.get("sec-fetch-site", "none").lower() in {"same-origin", "none"}:
        return True
    return scope["method"] == "GET" and _is_whole_page(headers)


def _is_whole_page(headers: Headers) -> bool:
    """Tell whether the browser loads a page of its own, and no frame or picture of another page."""
    mode, dest = (headers.get(f"sec-fetch-{name}", "").lower() for name in ("mode", "dest"))
    return mode == "navigate" and dest == "document"


def _place(where: str, origin: str) -> tuple[str, int] | None:
    """Return host and port of a URL or a `Host`, the port by the origin's scheme where it has none; None if invalid."""
    scheme, _, rest = where.partition("://")
    try:
        parts = urlsplit(f"//{rest or scheme}")
        port = parts.port
    except ValueError:
        return None
    default = _PORTS.get(origin.partition("://")[0])
    # An origin has a scheme, a host and a port, and nothing more.
    if default is None or not parts.hostname or parts.username is not None or parts.path or parts.query:
        return None
    return parts.hostname, default if port is None else port


def _plain(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower().strip("[]") for name in names)


def host_name(url: str) -> str | None:
    """Return the lower-case host of a URL (or "//host:port"), without port and brackets; None where it has none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


class BodyLimit:
    """Refuses bodies over a message's needs with 413 too_large, chunked ones without a length too.

    A body may have 12 bytes for each of `most_characters` (MAX_MESSAGE_CHARACTERS), and 100,000 more. Bodies of
    `UPLOADS` may have `most_uploaded` bytes and are streamed: the part that was taken before the limit stays. Both
    functions are called at each request. Only paths that begin with one of `paths` are limited.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        paths: tuple[str, ...],
        most_characters: Callable[[], int],
        most_uploaded: Callable[[], int],
    ) -> None:
        self.app = app
        self.paths = paths
        self.most_characters = most_characters
        self.most_uploaded = most_uploaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the whole body, which is small, and pass it on; stream an upload's."""
        bodiless = scope["type"] != "http" or scope["method"] in {"GET", "HEAD", "OPTIONS"}
        if bodiless or not scope["path"].startswith(self.paths):
            return await self.app(scope, receive, send)
        is_upload = scope["path"] in UPLOADS
        most = self.most_uploaded() if is_upload else BYTES_A_CHARACTER * self.most_characters() + BYTES_BESIDE
        if _is_told_too_large(Headers(scope=scope).get("content-length"), most):
            return await plain_error(413, "too_large", _sentence(most))(scope, receive, send)
        if is_upload:
            return await self.app(scope, _counted(receive, most), send)
        try:
            body = await _read(receive, most)
        except ClientDisconnect:
            return None  # Nobody waits for an answer, and half of a body is none.
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
    """Wrap `receive` so that it raises TooLarge once more than `most` bytes have come."""
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
    """Return the body, or None where it is over the limit.

    Raises:
        ClientDisconnect: the client has left amid it.
    """
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > most:
            return None
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)
