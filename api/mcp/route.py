"""`/mcp`: the memory for MCP clients, over streamable HTTP, each request for itself (stateless).

Nothing of the protocol's library is imported before the first request.
"""

import asyncio
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, Protocol

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from recollect.api.auth.caller import caller_of
from recollect.api.auth.whose import Whose
from recollect.api.mcp import tools as mcp_tools
from recollect.api.mcp.door import Door
from recollect.memory.memory import Memory
from recollect.memory.values.scope import check_id

USER_HEADER = "X-Memory-User"


def user_of_call(request: Request) -> str:
    """Return whose memory this very request is about: the key's own user, else X-Memory-User, else `?user_id=`.

    A key of one user's own needs no name, and what a client names all the same, for other ends, is not looked at.

    Raises:
        InvalidRequest: nobody is named, or what is named is no id.
    """
    caller = caller_of(request.state)
    if caller.user_id is not None:
        return caller.user_id
    given = request.headers.get(USER_HEADER) or request.query_params.get("user_id") or None
    if given is not None:
        check_id(USER_HEADER if USER_HEADER in request.headers else "user_id", given)
    return caller.acts_for(given, field=f"{USER_HEADER} or user_id")


class OpenDoor(Door):
    """The door to an open memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @override
    def whose(self, request: Any) -> Whose:
        """Return whose memory it is, and the agent of the caller's key."""
        return Whose(user_of_call(request), caller_of(request.state).agent_id)

    @override
    async def call(self, whose: Whose, name: str, arguments: mcp_tools.Json) -> mcp_tools.Json:
        """Call a tool."""
        return await mcp_tools.call(self._memory, whose, name, arguments)

    @override
    async def profile(self, whose: Whose) -> str:
        """Return what is always known of the user."""
        return await mcp_tools.profile(self._memory, whose)


class McpSessions(Protocol):
    """What the SDK handles requests with, while it runs."""

    def run(self) -> AbstractAsyncContextManager[None]:
        """Be ready for requests."""
        ...

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one."""
        ...


class McpDoor:
    """Opens at the first request, and is closed by the lifespan."""

    def __init__(self, memory: Memory) -> None:
        self._door = OpenDoor(memory)
        self._opening = asyncio.Lock()
        self._sessions: McpSessions | None = None
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        sessions = self._sessions or await self._open()
        await sessions.handle_request(scope, receive, send)

    async def close(self) -> None:
        """End what is under way."""
        self._closing.set()
        if self._running is not None:
            await self._running

    async def _open(self) -> McpSessions:
        async with self._opening:
            if self._sessions is None:
                sessions = await asyncio.to_thread(_sessions, self._door)
                opened = asyncio.Event()
                # The tasks within belong to no single request.
                running = asyncio.create_task(self._run(sessions, opened), name="mcp-sessions", context=Context())
                await opened.wait()
                self._sessions, self._running = sessions, running
        return self._sessions

    async def _run(self, sessions: McpSessions, opened: asyncio.Event) -> None:
        """Hold the sessions open: the task that enters their scope must be the one that leaves it."""
        async with sessions.run():
            opened.set()
            await self._closing.wait()


def _sessions(door: OpenDoor) -> McpSessions:
    """Return the SDK's session manager. Its libraries are read from disk: not on the event loop."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from recollect.api.mcp.server import make_server

    # Host, Origin and body size are checked in front of all routes (api/middleware/guard.py).
    return StreamableHTTPSessionManager(make_server(door), json_response=True, stateless=True)


class _Endpoint:
    """An application of its own to Starlette: the SDK sends its answers itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        door: McpDoor = scope["app"].state.mcp
        await door.handle(scope, receive, send)


route = Route("/mcp", endpoint=_Endpoint(), methods=["POST"], name="mcp", include_in_schema=False)
"""POST alone: without sessions there is no stream to listen to (GET), and nothing to end (DELETE)."""
