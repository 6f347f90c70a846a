"""The FastAPI application: its lifespan opens and closes everything, its routers translate."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from urllib.parse import urlsplit

from fastapi import FastAPI

from recollect.api import errors, openapi
from recollect.api.auth.access_rules import AccessRules, TokenRules, check_rules
from recollect.api.auth.admission import open_admission
from recollect.api.auth.lock import Lock
from recollect.api.auth.page_sessions import PageSessions
from recollect.api.auth.visits import VisitRules, Visits, check_public_url
from recollect.api.endpoint_places import tell_places
from recollect.api.headers import SecurityHeaders
from recollect.api.inspector.door import PageDoor
from recollect.api.json_answer import JsonAnswer
from recollect.api.late_routes import GROUPS, PAGES, AddLateRoutes, LateRoutes
from recollect.api.mcp import route as mcp
from recollect.api.middleware.access_log import AccessLog
from recollect.api.middleware.cors import Cors, check_origins
from recollect.api.middleware.guard import BodyLimit, HostGuard
from recollect.api.routes import agent, health
from recollect.api.running_imports import RunningImports
from recollect.api.telemetry import metrics
from recollect.api.telemetry.observers import open_observer
from recollect.api.version import VERSION
from recollect.graph.resources import Services, SharedServices, shared
from recollect.graph.turns import TurnRunner
from recollect.memory.memory import Memory
from recollect.memory.transfer.status.import_records import ImportRecords
from recollect.settings import Settings, current_settings

ROUTERS = (agent.router, health.router, metrics.router)
"""The routes of a turn, and those that machines ask every few seconds; the others come late."""
OWN_PATHS = ("/api", "/v1", "/mcp", "/memory-stats", "/memory/clear", "/health", "/metrics")
STUDIO = "https://smith.langchain.com"
"""LangGraph Studio's page; `--studio-url` names another one, which CORS_ORIGINS lets in."""
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
    """Create the application. `settings` None: the environment's, read when they are needed.

    `guarded` are the prefixes of its own paths; `visitor` is the one foreign page that may call all the others, which
    are another program's; `url` is its own address, for the lock file of DATA_DIR.
    """

    def names() -> list[str]:
        chosen = settings or current_settings()
        public = urlsplit(chosen.public_url or "").hostname
        return [chosen.host, *chosen.allowed_hosts, *([public] if public else [])]

    def hosts() -> tuple[str, ...]:
        return (settings or current_settings()).allowed_hosts

    def origins() -> tuple[str, ...]:
        return (settings or current_settings()).cors_origins

    def own_pages() -> tuple[str, ...]:
        """Name the inspector's own page too: a proxy may have changed the `Host` that it came to."""
        public = (settings or current_settings()).public_url
        return (*origins(), *([public.rstrip("/")] if public else []))

    def most_characters() -> int:
        return (settings or current_settings()).max_message_characters

    def most_uploaded() -> int:
        return (settings or current_settings()).max_upload_mb * 1_000_000

    def visits() -> Visits:
        found: Visits = app.state.visits
        return found

    app = FastAPI(
        title="Recollect",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        version=VERSION,
        description=DESCRIPTION,
        lifespan=_lifespan(settings, services, url),
        responses=errors.RESPONSES,
        default_response_class=JsonAnswer,
    )
    errors.install_errors(app)
    for router in ROUTERS:
        app.include_router(router)
    tell_places(app.routes)
    app.router.routes.append(mcp.route)
    is_alone = guarded == ("/",)
    late = LateRoutes(app, (*GROUPS, PAGES) if is_alone else GROUPS)
    if not is_alone:
        late.add_all()  # the other program's routes come behind these and take every other address
    openapi.install_openapi(app, most_characters=most_characters, add_routes=late.add_all)
    # The innermost comes first: a body is read only after the lock has identified its sender.
    app.add_middleware(BodyLimit, paths=guarded, most_characters=most_characters, most_uploaded=most_uploaded)
    app.add_middleware(Lock, admission=lambda: app.state.admission, visits=visits, own=guarded)
    app.add_middleware(Cors, origins=origins, own=guarded, visitor=visitor)
    app.add_middleware(HostGuard, names=names, origins=own_pages, hosts=hosts, own=guarded, visitor=visitor)
    app.add_middleware(PageDoor, visits=visits, has_pages=is_alone)
    app.add_middleware(SecurityHeaders, paths=guarded)
    app.add_middleware(AccessLog, paths=guarded)
    app.add_middleware(AddLateRoutes, routes=late)
    return app


def _lifespan(
    settings: Settings | None, services: SharedServices, url: str | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        chosen = settings or await _settings()
        rules = access_rules(chosen)
        entry = visit_rules(chosen)
        app.state.owner_token = token = secrets.token_urlsafe(32)
        async with open_observer(chosen.otel_exporter_otlp_endpoint, app.state) as observer:
            opened = await services.open(settings, url=url, token=token, observer=observer)
            app.state.services = opened
            app.state.turns = turns = TurnRunner(opened)
            memory = opened.memory
            app.state.imports = imports = RunningImports(ImportRecords(memory), errors.error_body)
            app.state.stop_bulk = memory.bulk.stop
            app.state.reindexer = reindexer = memory.operations.reindexer()
            app.state.mcp = mcp_door = mcp.McpDoor(memory)
            try:
                app.state.visits = Visits(entry, _page_sessions(chosen, memory))
                async with open_admission(
                    rules, memory.keys, memory.rate_leases, owner_token=token, clock=memory.now
                ) as app.state.admission:
                    yield
            finally:
                # Work that starts more work ends first, and the stores close last: drained updates still write.
                memory.bulk.stop()
                await imports.close()
                await mcp_door.close()
                await reindexer.close()
                await _drain(app, opened, turns)
                await services.close()

    return lifespan


def access_rules(settings: Settings) -> AccessRules:
    """Return the rules of who may call.

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
            user_prefix_claim=settings.jwt_user_prefix_claim,
        ),
        forwards_keys=settings.forward_api_key,
        per_minute=settings.rate_limit_per_minute,
        burst=settings.rate_limit_burst or settings.rate_limit_per_minute,
    )
    check_rules(rules)
    check_origins(settings.cors_origins)
    return rules


def visit_rules(settings: Settings) -> VisitRules:
    """Return the rules of visits to the inspector.

    Raises:
        ConfigurationError: PUBLIC_URL is no address.
    """
    check_public_url(settings.public_url)
    return VisitRules(
        is_on=settings.inspector == "on",
        public_url=settings.public_url,
        allows_insecure=settings.allow_insecure,
    )


def _page_sessions(settings: Settings, memory: Memory) -> PageSessions | None:
    """Return the inspector's sessions; None without AUTH, where nobody signs in."""
    if settings.auth == "none":
        return None
    return PageSessions(
        memory.sessions,
        memory.keys,
        clock=memory.now,
        idle=timedelta(minutes=settings.session_minutes),
        has_keys=settings.auth == "api_key",
    )


async def _settings() -> Settings:
    """Return the environment's settings, read from disk the first time."""
    return await asyncio.to_thread(current_settings)


async def _drain(app: FastAPI, opened: Services, turns: TurnRunner) -> None:
    """Finish turns, then updates, in SHUTDOWN_SECONDS together, counted from when the server was asked to stop."""
    now = asyncio.get_running_loop().time
    stop_at: float = getattr(app.state, "stop_at", now() + opened.memory.config.shutdown_seconds)
    await turns.drain(max(0.0, stop_at - now()))
    await opened.memory.operations.drain(max(0.0, stop_at - now()))


def __getattr__(name: str) -> FastAPI:
    """Make `app`, the application for `langgraph dev` (langgraph.json), when it is asked for.

    It serves LangGraph's routes too: Studio may call those.
    """
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = create_app(guarded=OWN_PATHS, visitor=STUDIO)
    return made
