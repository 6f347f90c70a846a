"""The lock on every door: finds out who calls, and how often, before a body is read or any route runs."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from api.admission import Admission, Credentials
from api.bearer import bearer_token, is_from_this_machine, sender
from api.caller import Caller
from api.errors import error_answer
from memory.errors import RateLimited, RecollectError, Unauthorized

ANYBODY = Caller("anybody", is_admin=True)
"""Without AUTH nobody proves who they are: the caller is the administrator, and only this machine may call."""
OWNER = Caller("owner", is_admin=True)
"""Whoever may read the lock file of DATA_DIR, on the machine where it lies."""
NOBODY = Caller("nobody", user_id="")
"""Who asks for what is open to all; it may act for no user."""
OPEN = frozenset({"/", "/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"})
"""What needs no key: pages and texts that are the same for everybody."""
UNCOUNTED = "/metrics"


class Lock:
    """Leaves the caller in the request's state (`request.state.caller`), or refuses with 401, 403 or 429.

    `admission` is asked for at each request, because it opens with the application. Paths that begin with none of `own`
    are another program's (LangGraph's, under `langgraph dev`), which binds no caller to a user: with AUTH they are the
    administrators'.
    """

    def __init__(self, app: ASGIApp, *, admission: Callable[[], Admission], own: tuple[str, ...] = ("/",)) -> None:
        self.app = app
        self.own = own
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or answer why not."""
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
            _count(admission, address)
            return NOBODY
        if admission.credentials is None:
            caller, counted = ANYBODY, address
        else:
            caller = await _proven(admission, admission.credentials, token, address)
            counted = caller.name
        if not path.startswith(self.own):
            caller.check_admin()
        if path != UNCOUNTED:
            _count(admission, counted)
        return caller


async def _proven(admission: Admission, credentials: Credentials, token: bytes | None, address: str) -> Caller:
    """Who shows the token. An address with too many failures waits, unless it shows one that was good before.

    Otherwise whoever shares an address with a guesser (behind a proxy everybody does) would be locked out with it.
    """
    limits = admission.limits
    if limits is not None and (token is None or not admission.is_proven(token)):
        seconds = limits.wait(address)
        if seconds:
            raise RateLimited(retry_after=seconds)
    try:
        caller = await _shown(credentials, token)
    except Unauthorized:
        _count(admission, address)
        raise
    if limits is not None and token is not None:
        admission.prove(token)
    return caller


async def _shown(credentials: Credentials, token: bytes | None) -> Caller:
    if token is None:
        raise Unauthorized
    return await credentials.caller(token.decode("latin-1"))


def _count(admission: Admission, who: str) -> None:
    seconds = admission.limits.take(who) if admission.limits is not None else 0
    if seconds:
        raise RateLimited(retry_after=seconds)
