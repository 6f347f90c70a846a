"""`recollect mcp`: the memory of one user for an MCP client, over standard input and output.

It passes each call on to a service's `/mcp`: the named one, the owner of DATA_DIR, or one that it starts, which other
commands and clients find too. When that owner goes, the next call finds another, or starts one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.types import TextContent, TextResourceContents
from mcp.types.version import LATEST_MODERN_VERSION
from typing_extensions import override

from recollect.api.auth.whose import Whose
from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.owner import OwnerRefused, reachable, read_answer, serving_owner
from recollect.api.cli.terminal.connection import connection
from recollect.api.mcp.door import Door
from recollect.api.mcp.route import USER_HEADER
from recollect.api.mcp.server import make_server
from recollect.api.mcp.tools import PROFILE, Json

Answer = TypeVar("Answer")
ANSWER_SECONDS = 120.0


def serve_mcp(told: CommandContext, *, user_id: str, url: str | None) -> None:
    """Serve until standard input ends.

    Raises:
        ConfigurationError: `url` is none, or a setting stops the service.
    """
    with ExitStack() as stack:
        door = ServiceDoor(stack, told, user_id=user_id, url=url)
        door.connect()
        asyncio.run(_serve(door))


async def _serve(door: "ServiceDoor") -> None:
    server = make_server(door)
    async with stdio_server() as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


class ServiceDoor(Door):
    """Passes calls on to a service. `stack` closes what it opens."""

    def __init__(self, stack: ExitStack, told: CommandContext, *, user_id: str, url: str | None) -> None:
        self._stack = stack
        self._told = told
        self._user_id = user_id
        self._url = url
        self._connecting = asyncio.Lock()
        self._service = ""
        self._headers: dict[str, str] = {}

    def connect(self) -> None:
        """Find or start the service, and check that it accepts this user's calls. Blocks until it answers.

        Raises:
            Refused: it refused, or cannot be reached.
        """
        self._stack.close()
        http = self._stack.enter_context(connection(self._told, self._url, may_be_new=True)).client.http
        try:
            read_answer(http.get(f"/api/users/{quote(self._user_id, safe='')}/facts", params={"limit": 1}))
        except httpx.TransportError as error:
            raise self._silence(error) from error
        self._service = str(http.base_url)
        key = http.headers.get("Authorization")
        self._headers = {USER_HEADER: self._user_id, **({} if key is None else {"Authorization": key})}

    @override
    def whose(self, request: Any) -> Whose:
        """Return the one user whom `--user` names."""
        return Whose(self._user_id)

    @override
    async def call(self, whose: Whose, name: str, arguments: Json) -> Json:
        """Call the service's tool."""
        result = await self._ask(lambda client: client.call_tool(name, arguments))
        if result.is_error:
            raise OwnerRefused(" ".join(item.text for item in result.content if isinstance(item, TextContent)))
        said: Json = result.structured_content
        return said

    @override
    async def profile(self, whose: Whose) -> str:
        """Read the service's resource."""
        result = await self._ask(lambda client: client.read_resource(PROFILE))
        return "".join(item.text for item in result.contents if isinstance(item, TextResourceContents))

    async def _ask(self, question: Callable[[Client], Awaitable[Answer]]) -> Answer:
        """Ask the named service, or the one that has DATA_DIR open now.

        Raises:
            Refused: it refused the call, or cannot be reached.
        """
        async with self._connecting:
            await asyncio.to_thread(self._follow)
        refusal: MCPError | None = None
        try:
            async with (
                httpx2.AsyncClient(
                    headers=self._headers, timeout=ANSWER_SECONDS, trust_env=self._url is not None
                ) as http,
                Client(
                    streamable_http_client(f"{self._service.rstrip('/')}/mcp", http_client=http),
                    mode=LATEST_MODERN_VERSION,
                ) as client,
            ):
                try:
                    return await question(client)
                except MCPError as error:
                    refusal = error
        except ExceptionGroup as group:
            # Errors of the connection's own tasks arrive wrapped in groups.
            if group.split(httpx2.TransportError)[1] is not None:
                raise
            raise self._silence(group) from group
        raise OwnerRefused(refusal.message)

    def _follow(self) -> None:
        """Reconnect where another process has DATA_DIR open now, or none has."""
        config = self._told.config
        if self._url is not None or (config.mongodb_url is not None and config.qdrant_url is not None):
            return
        owner = serving_owner(config)
        if owner is None or reachable(owner.url or "").rstrip("/") != self._service.rstrip("/"):
            self.connect()

    def _silence(self, error: BaseException) -> OwnerRefused:
        return OwnerRefused(f"The service does not answer ({type(error).__name__}); try again, or start it.")
