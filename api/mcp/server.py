"""The MCP server, made by the official SDK. Heavy (23 MB, 0.5 s): imported at the first request to `/mcp`."""

import json
import logging
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from recollect.api.auth.whose import Whose
from recollect.api.mcp.door import Door
from recollect.api.mcp.tools import PROFILE, TOOLS, ToolSpec
from recollect.api.version import VERSION
from recollect.memory.values.errors import InvalidRequest, RecollectError

logger = logging.getLogger(__name__)

Call = ServerRequestContext[Any, Any]
INSTRUCTIONS = (
    "A memory of what the user has said. Search it before you answer what may have come up before; add what the user "
    "says of themselves and will want you to know; forget only what they ask you to."
)
_NOT_FOUND = -32002
"""MCP's code for a resource that does not exist."""


class _Handlers:
    """Translates between the protocol and the door.

    What is wrong with a call's user or its name is the protocol's error; what goes wrong in a tool is the tool's
    result, which the model reads and can act upon.
    """

    def __init__(self, door: Door) -> None:
        self._door = door

    async def list_tools(self, _: Call, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_shown(tool) for tool in TOOLS])

    async def call_tool(self, call: Call, asked: types.CallToolRequestParams) -> types.CallToolResult:
        if asked.name not in {tool.name for tool in TOOLS}:
            raise MCPError(types.INVALID_PARAMS, "There is no such tool.")
        whose = _whose(self._door, call)
        try:
            answer = await self._door.call(whose, asked.name, asked.arguments or {})
        except RecollectError as error:
            return _failed(error)
        except Exception as error:
            raise _broken(error) from error
        return types.CallToolResult(content=[_text(json.dumps(answer, ensure_ascii=False))], structured_content=answer)

    async def list_resources(self, _: Call, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[_PROFILE])

    async def read_resource(self, call: Call, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if str(asked.uri) != PROFILE:
            raise MCPError(_NOT_FOUND, f"There is no such resource; there is {PROFILE}.")
        whose = _whose(self._door, call)
        try:
            text = await self._door.profile(whose)
        except RecollectError as error:
            raise _refusal(error, types.INTERNAL_ERROR) from error
        except Exception as error:
            raise _broken(error) from error
        content = types.TextResourceContents(uri=PROFILE, mime_type=_JSON, text=text)
        return types.ReadResourceResult(contents=[content])


def make_server(door: Door) -> "Server[Any]":
    """Return a server in front of the door."""
    handlers = _Handlers(door)
    return Server(
        "recollect",
        version=VERSION,
        title="Recollect",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_read_resource=handlers.read_resource,
    )


def _whose(door: Door, call: Call) -> Whose:
    try:
        return door.whose(call.request)
    except RecollectError as error:
        raise _refusal(error, types.INVALID_PARAMS) from error


def _refusal(error: RecollectError, code: int) -> MCPError:
    """Return the error as the protocol says it."""
    details = [problem._asdict() for problem in error.problems] if isinstance(error, InvalidRequest) else None
    return MCPError(code, error.message, {"code": error.code, "details": details})


def _broken(error: Exception) -> MCPError:
    """Turn an unexpected error into one that tells the client nothing of what the log says."""
    logger.error("mcp call broke", extra={"action": "mcp_broke"}, exc_info=error)
    return MCPError(types.INTERNAL_ERROR, "Something went wrong; the log has the details.")


def _failed(error: RecollectError) -> types.CallToolResult:
    content = {"error": {"code": error.code, "message": error.message}}
    return types.CallToolResult(content=[_text(error.message)], structured_content=content, is_error=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _shown(tool: ToolSpec) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.reads_only,
        destructive_hint=tool.destroys,
        idempotent_hint=True,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        annotations=hints,
    )


_JSON = "application/json"
_PROFILE = types.Resource(
    name="profile",
    title="What is known of the user",
    description="The facts by key, and pinned notes.",
    uri=PROFILE,
    mime_type=_JSON,
)
