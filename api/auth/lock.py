"""The lock: identifies the caller and limits requests, before a body is read or any route runs."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from recollect.api.auth.admission import Admission, Credentials
from recollect.api.auth.bearer import bearer_token, is_from_this_machine, sender
from recollect.api.auth.caller import Caller
from recollect.api.auth.rate_limit import RateLimit
from recollect.api.errors import error_answer
from recollect.memory.values.errors import RateLimited, RecollectError, Unauthorized

ANYBODY = Caller("anybody", is_admin=True)
"""The caller without AUTH: nobody proves who they are, and only this machine may call, as the administrator."""
OWNER = Caller("owner", is_admin=True)
"""The caller that can read the lock file of DATA_DIR, on its machine."""
NOBODY = Caller("nobody", user_id="")
"""The caller of what is open to all; it may act for no user."""
OPEN = frozenset({"/", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"})
"""Paths that need no key: pages and texts that are the same for everybody."""
UNCOUNTED = "/metrics"


class Lock:
    """Sets the caller in the request's state (`request.state.caller`), or refuses with 401, 403 or 429.

    `admission` is a function called at each request, because it opens with the application. Paths that begin with none
    of `own` are another program's (LangGraph's, under `langgraph dev`), which binds no caller to a user: with AUTH only
    administrators may call them.
    """

    def __init__(self, app: ASGIApp, *, admission: Callable[[], Admission], own: tuple[str, ...] = ("/",)) -> None:
        self.app = app
        self.own = own
        self._admission = admission

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
        if path == "/health" or path.startswith("/health/"):
            return NOBODY
        admission = self._admission()
        if admission.credentials is None and admission.limits is None:
            return ANYBODY
        token = bearer_token(scope)
        if admission.is_owners(token) and is_from_this_machine(scope):
            return OWNER
        address = sender(scope)
        if path in OPEN:
            _take(admission.limits, address)
            return NOBODY
        if admission.credentials is None:
            caller, counted = ANYBODY, address
        else:
            caller = await _proven(admission, admission.credentials, token, address)
            counted = caller.name
        if not path.startswith(self.own):
            caller.check_admin()
        if path != UNCOUNTED:
            _take(admission.limits, counted)
        return caller


async def _proven(admission: Admission, credentials: Credentials, token: bytes | None, address: str) -> Caller:
    """Return the token's caller. Only failures count against `address`: a guesser blocks no valid caller there."""
    try:
        return await _shown(credentials, token)
    except Unauthorized:
        _take(admission.failures, address)
        raise


async def _shown(credentials: Credentials, token: bytes | None) -> Caller:
    if token is None:
        raise Unauthorized
    return await credentials.caller(token.decode("latin-1"))


def _take(limit: RateLimit | None, sender: str) -> None:
    seconds = limit.take(sender) if limit is not None else 0
    if seconds:
        raise RateLimited(retry_after=seconds)
