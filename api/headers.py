"""Security headers of every answer: browsers run nothing from it, cache nothing, and send no referrer."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Headers = tuple[tuple[bytes, bytes], ...]

NOTHING_RUNS = "default-src 'none'; frame-ancestors 'none'"
"""The policy of answers that are data: a browser that shows one loads and runs nothing."""
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The policy of pages: they load from the service alone, and nothing written into a page runs."""
SAME_FOR_ALL = frozenset({"/openapi.json"})
"""Paths whose answers may be cached: they hold nobody's data."""


class SecurityHeaders:
    """Adds the missing security headers to each answer. Only for paths that begin with one of `paths`."""

    def __init__(self, app: ASGIApp, *, paths: tuple[str, ...]) -> None:
        self.app = app
        self.paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its answer back with the headers."""
        if scope["type"] != "http" or not scope["path"].startswith(self.paths):
            return await self.app(scope, receive, send)
        wanted = _wanted(scope["path"])

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                added = [header for header in wanted if header[0] not in given]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        return await self.app(scope, receive, sending)


def security_headers(path: str) -> dict[str, str]:
    """Return the headers of an answer from this path, for one that is sent outside the middleware."""
    return {name.decode(): value.decode() for name, value in _wanted(path)}


def _headers(policy: str, *, referrer: str = "no-referrer", is_kept: bool = False) -> Headers:
    said = {
        "content-security-policy": policy,
        "referrer-policy": referrer,
        "x-content-type-options": "nosniff",
        **({} if is_kept else {"cache-control": "no-store"}),
    }
    return tuple((name.encode(), value.encode()) for name, value in said.items())


_DATA, _TEXT = _headers(NOTHING_RUNS), _headers(NOTHING_RUNS, is_kept=True)
PAGE_HEADERS = _headers(PAGE, referrer="same-origin")
"""Headers of every page. `no-referrer` would make its forms send `Origin: null`."""


def _wanted(path: str) -> Headers:
    return _TEXT if path in SAME_FOR_ALL else _DATA
