"""The lock on every door: finds out who calls, before any route runs."""

from starlette.types import ASGIApp, Receive, Scope, Send

from api.caller import Caller

ANYBODY = Caller("anybody", is_admin=True)
"""Without AUTH nobody proves who they are: the caller is the administrator, and only this machine may call."""


class Lock:
    """Leaves the caller in the request's state (`request.state.caller`), or refuses the request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller."""
        if scope["type"] == "http":
            scope.setdefault("state", {})["caller"] = ANYBODY
        await self.app(scope, receive, send)
