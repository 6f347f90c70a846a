"""The FastAPI application: its lifespan opens and closes everything, its routers translate."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from api import (
    admin,
    agent,
    documents,
    erasures,
    errors,
    exports,
    facts,
    health,
    imports,
    keys,
    mcp,
    memories,
    memory_stats,
    metrics,
    openai_door,
    openapi,
    regenerate,
    search,
    threads,
    turns,
)
from api.access_log import AccessLog
from api.access_rules import AccessRules, TokenRules, check_rules
from api.admission import open_admission
from api.cors import Cors, check_origins
from api.guard import BodyLimit, HostGuard
from api.headers import SecurityHeaders
from api.lock import Lock
from api.observers import open_observer
from api.version import VERSION
from graph.resources import Services, SharedServices, shared
from graph.turns import Turns
from memory.reindexing import Reindexer
from settings import Settings, current_settings

ROUTERS = (
    agent.router,
    openai_door.router,
    turns.router,
    regenerate.router,
    threads.router,
    facts.router,
    health.router,
    search.router,
    memories.router,
    memory_stats.router,
    imports.router,
    exports.router,
    erasures.router,
    documents.router,
    metrics.router,
    admin.router,
    keys.router,
)
OWN_PATHS = ("/api", "/v1", "/mcp", "/memory-stats", "/memory/clear", "/health", "/metrics")
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

    def origins() -> tuple[str, ...]:
        return (settings or current_settings()).cors_origins

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
    app.router.routes.append(mcp.route)
    openapi.install(app)
    # From the inside out: a body is read once it is known who sends it.
    app.add_middleware(BodyLimit, paths=guarded, most_uploaded=most_uploaded)
    app.add_middleware(Lock, admission=lambda: app.state.admission, own=guarded)
    app.add_middleware(Cors, origins=origins)
    app.add_middleware(HostGuard, names=names, origins=origins, paths=guarded)
    if visitor is not None:
        app.add_middleware(HostGuard, names=lambda: [*names(), visitor], origins=origins, paths=("/",))
    app.add_middleware(SecurityHeaders, paths=guarded)
    app.add_middleware(AccessLog, paths=guarded)
    return app


def _lifespan(
    settings: Settings | None, services: SharedServices, url: str | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        chosen = settings or await _settings()
        rules = access_rules(chosen)
        app.state.owner_token = token = secrets.token_urlsafe(32)
        async with open_observer(chosen.otel_exporter_otlp_endpoint, app.state) as observer:
            opened = await services.open(settings, url=url, token=token, observer=observer)
            app.state.services = opened
            app.state.turns = turns = Turns(opened)
            memory = opened.memory
            app.state.reindexer = reindexer = Reindexer(memory.documents, memory.index, memory.embedder)
            app.state.mcp = mcp_door = mcp.McpDoor(memory)
            try:
                async with open_admission(rules, memory.keys, owner_token=token) as app.state.admission:
                    yield
            finally:
                await mcp_door.close()
                await reindexer.close()
                await _drain(app, opened, turns)
                await services.close()

    return lifespan


def access_rules(settings: Settings) -> AccessRules:
    """Who may call.

    Raises:
        ConfigurationError: the settings contradict each other.
    """
    rules = AccessRules(
        auth=settings.auth,
        tokens=TokenRules(
            secret=settings.jwt_secret.get_secret_value() if settings.jwt_secret else None,
            jwks_url=settings.jwt_jwks_url,
            algorithms=settings.jwt_algorithms,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            user_claim=settings.jwt_user_claim,
            admin_claim=settings.jwt_admin_claim,
        ),
        forwards_keys=settings.forward_api_key,
        per_minute=settings.rate_limit_per_minute,
        burst=settings.rate_limit_burst or settings.rate_limit_per_minute,
    )
    check_rules(rules)
    check_origins(settings.cors_origins)
    return rules


async def _settings() -> Settings:
    """The environment's, read from disk the first time."""
    return await asyncio.to_thread(current_settings)


async def _drain(app: FastAPI, opened: Services, turns: Turns) -> None:
    """Finish turns, then updates, in SHUTDOWN_SECONDS together, counted from when the server was asked to stop."""
    now = asyncio.get_running_loop().time
    stop_at: float = getattr(app.state, "stop_at", now() + opened.memory.config.shutdown_seconds)
    await turns.drain(max(0.0, stop_at - now()))
    await opened.memory.updater.drain(max(0.0, stop_at - now()))


app = create_app(guarded=OWN_PATHS, visitor=STUDIO)
"""For `langgraph dev` (langgraph.json), which runs LangGraph's routes beside these: Studio's page may call those."""
