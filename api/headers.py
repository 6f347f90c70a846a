"""Security headers of every answer: browsers run nothing from it, cache nothing, and send no referrer."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

Headers = tuple[tuple[bytes, bytes], ...]

NOTHING_RUNS = "default-src 'none'; frame-ancestors 'none'"
"""The policy of answers that are data: a browser that shows one loads and runs nothing."""
DOCS_RUN = (
    "default-src 'none'; script-src 'unsafe-inline' https://cdn.jsdelivr.net; "
    "style-src 'unsafe-inline' https://cdn.jsdelivr.net https://fonts.googleapis.com; "
    "font-src https://fonts.gstatic.com; img-src 'self' data: https://fastapi.tiangolo.com https://cdn.redoc.ly; "
    "connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The policy of the pages that show the API, whose scripts FastAPI loads from there."""
DOCS = frozenset({"/docs", "/docs/oauth2-redirect", "/redoc"})
SAME_FOR_ALL = DOCS | {"/", "/openapi.json"}
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


def _headers(policy: str, *, is_kept: bool = False) -> Headers:
    said = {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        **({} if is_kept else {"cache-control": "no-store"}),
    }
    return tuple((name.encode(), value.encode()) for name, value in said.items())


_DATA, _TEXT, _DOCS = _headers(NOTHING_RUNS), _headers(NOTHING_RUNS, is_kept=True), _headers(DOCS_RUN, is_kept=True)


def _wanted(path: str) -> Headers:
    if path not in SAME_FOR_ALL:
        return _DATA
    return _DOCS if path in DOCS else _TEXT
