"""The lock: identifies the caller and limits requests, before a body is read or any route runs."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.api.auth.admission import Admission, take
from recollect.api.auth.bearer import bearer_token, is_from_this_machine, sender
from recollect.api.auth.caller import ANYBODY, NOBODY, OWNER, Caller
from recollect.api.auth.visits import STATIC, Visit, Visits, is_page
from recollect.api.errors import error_answer
from recollect.memory.values.errors import RecollectError

OPEN = frozenset({"/docs", "/redoc", "/openapi.json"})
"""Paths that need no key: pages and texts that are the same for everybody."""
UNCOUNTED = "/metrics"


class Lock:
    """Sets the caller in the request's state (`request.state.caller`), or refuses with 401, 403 or 429.

    `admission` and `visits` are functions called at each request, because they open with the application. The
    inspector's pages take their caller from the visit's cookie, all other paths from the bearer token, and neither
    looks at the other. Paths that begin with none of `own` are another program's (LangGraph's, under `langgraph dev`),
    which binds no caller to a user: with AUTH only administrators may call them.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        admission: Callable[[], Admission],
        visits: Callable[[], Visits],
        own: tuple[str, ...] = ("/",),
    ) -> None:
        self.app = app
        self.own = own
        self._admission = admission
        self._visits = visits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or refuse it."""
        if scope["type"] == "http":
            try:
                caller = await self._caller(scope)
            except RecollectError as error:
                return await error_answer(error)(scope, receive, send)
            scope.setdefault("state", {})["caller"] = caller
        return await self.app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller:
        path: str = scope["path"]
        if path == "/health" or path.startswith(("/health/", STATIC)):
            return NOBODY
        admission = self._admission()
        if is_page(path) and path.startswith(self.own):
            return await self._visitor(scope, admission)
        if admission.credentials is None and admission.limits is None:
            return ANYBODY
        token = bearer_token(scope)
        if admission.is_owners(token) and is_from_this_machine(scope):
            return OWNER
        address = sender(scope)
        if path in OPEN:
            await take(admission.limits, address)
            return NOBODY
        if admission.credentials is None:
            caller, counted = ANYBODY, address
        else:
            caller = await admission.proven(token, address)
            counted = caller.name
        if not path.startswith(self.own):
            caller.check_admin()
        if path != UNCOUNTED:
            await take(admission.limits, counted)
        return caller

    async def _visitor(self, scope: Scope, admission: Admission) -> Caller:
        """Set the visit of a page's request in its state, and return its caller: nobody, where nobody signed in."""
        visit: Visit = await self._visits().enter(scope)
        scope.setdefault("state", {})["visit"] = visit
        caller = visit.caller or NOBODY
        await take(admission.limits, sender(scope) if caller in (ANYBODY, NOBODY) else caller.name)
        return caller
