"""The access log: one event a request, with its route's template. It never holds an id, a query or a header."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from time import perf_counter

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

UNMATCHED = "(unmatched)"
PROBES = ("/health", "/metrics")
"""Paths that machines ask every few seconds: they are logged at DEBUG."""
UNTRACED = nullcontext()
CLIENT_LEFT = 499
"""The status that is logged where the client left before an answer began; as nginx logs it."""


class AccessLog:
    """Logs and traces each request to paths that begin with one of `paths`, when its answer has ended."""

    def __init__(self, app: ASGIApp, *, paths: tuple[str, ...]) -> None:
        self.app = app
        self.paths = paths
        self._templates: Templates | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and log its outcome."""
        if scope["type"] != "http" or not scope["path"].startswith(self.paths):
            return await self.app(scope, receive, send)
        started, status = perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        route = self._template(scope)
        traces = getattr(scope["app"].state, "traces", None)
        with UNTRACED if traces is None else traces.request(scope, route) as request:
            try:
                await self.app(scope, receive, watched)
                if request is not None:
                    request.answered(status)
                status = status or CLIENT_LEFT
            except asyncio.CancelledError:
                status = status or CLIENT_LEFT
                raise
            finally:  # within the request's span: the line names its trace
                _log(scope["method"], route, status or 500, perf_counter() - started)
        return None

    def _template(self, scope: Scope) -> str:
        routes = scope["app"].routes
        if self._templates is None or self._templates.count != len(routes):  # routes come while requests are served
            self._templates = Templates(routes)
        return self._templates.of(scope["path"])


class Templates:
    """The templates of routes' paths. They are matched here, because many requests are refused before routing."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self.count = len(routes)
        paths = dict.fromkeys(context.path for context in iter_route_contexts(routes) if context.path)
        self._plain = frozenset(path for path in paths if "{" not in path)
        self._patterns = [(compile_path(path)[0], path) for path in paths if "{" in path]

    def of(self, path: str) -> str:
        """Return the template of the first route that the path fits; `UNMATCHED` without one."""
        if path in self._plain:
            return path
        return next((template for pattern, template in self._patterns if pattern.match(path)), UNMATCHED)


def _log(method: str, route: str, status: int, seconds: float) -> None:
    level = logging.DEBUG if route.startswith(PROBES) else logging.INFO
    if logger.isEnabledFor(level):
        fields = {"method": method, "route": route, "status": status}
        logger.log(level, "request", extra={"action": "request", **fields, "ms": round(seconds * 1000, 1)})
