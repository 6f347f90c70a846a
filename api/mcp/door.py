"""The door: what an MCP server opens. Apart from the server, because that imports the protocol's heavy library."""

from abc import abstractmethod
from typing import Any, Protocol

from recollect.api.mcp.tools import Json


class Door(Protocol):
    """What is behind the server: the memory itself, or the service that has it open."""

    @abstractmethod
    def user(self, request: Any) -> str:
        """Return whose memory `request` is about: the HTTP request of this very call, or None over stdio."""
        ...

    @abstractmethod
    async def call(self, user_id: str, name: str, arguments: Json) -> Json:
        """Call a tool."""
        ...

    @abstractmethod
    async def profile(self, user_id: str) -> str:
        """Return what is always known of the user, as JSON."""
        ...
