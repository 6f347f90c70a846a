"""The FastAPI application: its lifespan opens and closes everything, its routers translate."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from api import admin, agent, errors, facts, health, imports, metrics, openapi, search, threads, turns
from api.guard import BodyLimit, HostGuard
from api.lock import Lock
from api.version import VERSION
from graph.resources import Services, SharedServices, shared
from graph.turns import Turns
from memory.reindexing import Reindexer
from settings import Settings, current_settings

ROUTERS = (
    agent.router,
    turns.router,
    threads.router,
    facts.router,
    health.router,
    search.router,
    imports.router,
    metrics.router,
    admin.router,
)
OWN_PATHS = ("/api", "/health", "/metrics")
STUDIO = "smith.langchain.com"
"""Where LangGraph Studio's page comes from; `--studio-url` names another one, which ALLOWED_HOSTS lets in."""
DESCRIPTION = """An agent service that remembers: it recalls what matters before it answers, and learns afterwards.

Talk to it with `POST /api/agent`. Every error is `{"error": {"code", "message", "details", "turn_id"}}`."""


def create_app(
    settings: Settings | None = None,
    *,
    services: SharedServices = shared,
    guarded: tuple[str, ...] = ("/",),
    visitor: str | None = None,
    url: str | None = None,
) -> FastAPI:
    """The application. `settings` None: the environment's, read when they are needed.

    `guarded` are the beginnings of the paths whose Host, Origin and body size are checked; `visitor` is the one foreign
    page that may call all the other paths; `url` is where it serves, for the lock file of DATA_DIR.
    """

    def names() -> list[str]:
        chosen = settings or current_settings()
        return [chosen.host, *chosen.allowed_hosts]

    def most_uploaded() -> int:
        return (settings or current_settings()).max_upload_mb * 1_000_000

    app = FastAPI(
        title="Recollect",
        redirect_slashes=False,
        version=VERSION,
        description=DESCRIPTION,
        lifespan=_lifespan(settings, services, url),
        responses=errors.RESPONSES,
    )
    errors.install(app)
    for router in ROUTERS:
        app.include_router(router)
    openapi.install(app)
    app.add_middleware(Lock)
    app.add_middleware(BodyLimit, paths=guarded, most_uploaded=most_uploaded)
    app.add_middleware(HostGuard, names=names, paths=guarded)
    if visitor is not None:
        app.add_middleware(HostGuard, names=lambda: [*names(), visitor], paths=("/",))
    return app


def _lifespan(
    settings: Settings | None, services: SharedServices, url: str | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        opened = await services.open(settings, url=url)
        app.state.services = opened
        app.state.turns = turns = Turns(opened)
        memory = opened.memory
        app.state.reindexer = reindexer = Reindexer(memory.documents, memory.index, memory.embedder)
        try:
            yield
        finally:
            await reindexer.close()
            await _drain(app, opened, turns)
            await services.close()

    return lifespan


async def _drain(app: FastAPI, opened: Services, turns: Turns) -> None:
    """Finish turns, then updates, in SHUTDOWN_SECONDS together, counted from when the server was asked to stop."""
    now = asyncio.get_running_loop().time
    stop_at: float = getattr(app.state, "stop_at", now() + opened.memory.config.shutdown_seconds)
    await turns.drain(max(0.0, stop_at - now()))
    await opened.memory.updater.drain(max(0.0, stop_at - now()))


app = create_app(guarded=OWN_PATHS, visitor=STUDIO)
"""For `langgraph dev` (langgraph.json), which runs LangGraph's routes beside these: Studio's page may call those."""
