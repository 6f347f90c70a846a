"""Imports routes when somebody first asks for an address of theirs, so that a start waits for a turn's routes alone.

Building all routes takes half as long as the rest of a start, and holds 20 MiB for pages and protocols that many
services never use.
"""

import asyncio
import importlib
import threading
from collections.abc import Sequence

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.api.endpoint_places import tell_places
from recollect.memory.values.frozen import frozen


@frozen
class RouteGroup:
    """The addresses that are one of `paths` or below it, and the modules under `recollect.api` with their routers."""

    paths: tuple[str, ...]
    modules: tuple[str, ...]

    def may_serve(self, path: str) -> bool:
        """Tell whether the path may be one of these routes."""
        return any(path == own or path.startswith(f"{own}/") for own in self.paths)


GROUPS = (
    RouteGroup(("/api/context",), ("routes.context",)),
    RouteGroup(("/api/exchanges",), ("routes.exchanges",)),
    RouteGroup(("/v1/chat", "/v1/models"), ("openai.door", "openai.models")),
    RouteGroup(
        ("/v1/responses", "/v1/conversations"),
        ("openai.responses.door", "openai.responses.stored", "openai.responses.conversations"),
    ),
    RouteGroup(("/api/turns",), ("routes.turns", "routes.regenerate")),
    RouteGroup(("/api/threads", "/memory/clear"), ("routes.threads",)),
    RouteGroup(("/api/users", "/api/global", "/api/erasures"), ("routes.facts", "routes.exports", "routes.erasures")),
    RouteGroup(("/api/memory",), ("routes.search", "routes.memories")),
    RouteGroup(("/memory-stats",), ("routes.memory_stats",)),
    RouteGroup(("/api/import",), ("routes.imports",)),
    RouteGroup(("/api/documents", "/api/threads"), ("routes.documents",)),
    RouteGroup(("/api/admin",), ("routes.admin", "routes.evaluation", "routes.embedder", "routes.keys")),
    RouteGroup(("/static", "/docs", "/redoc"), ("inspector.static_files", "inspector.docs")),
)
PAGES = RouteGroup(("/", "/users", "/operations", "/user", "/sign-in", "/sign-out"), ("inspector.router",))
WHOLE = frozenset({"/openapi.json", "/docs"})
"""The texts that describe every route."""


class LateRoutes:
    """The groups of routes that one application does not have yet. Threads may add them at once."""

    def __init__(self, app: FastAPI, groups: Sequence[RouteGroup]) -> None:
        self._app = app
        self._missing = tuple(groups)
        self._adding = threading.Lock()

    def missing_for(self, path: str) -> Sequence[RouteGroup]:
        """Return the groups that have to be added before this path is asked for."""
        return self._missing if path in WHOLE else [group for group in self._missing if group.may_serve(path)]

    def add(self, groups: Sequence[RouteGroup]) -> None:
        """Import these groups' modules and add their routes, all or none; the application may have some already."""
        with self._adding:
            wanted = [group for group in self._missing if group in groups]
            routers = [_router(module) for group in wanted for module in group.modules]
            before = len(self._app.routes)
            for router in routers:
                self._app.include_router(router)
            # FastAPI builds a router's routes when it is first asked for one, and would do that on the event loop.
            tell_places(self._app.routes[before:])
            self._missing = tuple(group for group in self._missing if group not in wanted)

    def add_all(self) -> None:
        """Add every route."""
        self.add(self._missing)


class AddLateRoutes:
    """Adds the routes that a request may be for, in a thread, before the request goes on."""

    def __init__(self, app: ASGIApp, *, routes: LateRoutes) -> None:
        self.app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on once its routes are there."""
        if scope["type"] == "http" and (missing := self._routes.missing_for(scope["path"])):
            await asyncio.to_thread(self._routes.add, missing)
        await self.app(scope, receive, send)


def _router(module: str) -> APIRouter:
    router: APIRouter = importlib.import_module(f"recollect.api.{module}").router
    return router
