"""The door: what an MCP server opens. Apart from the server, because that imports the protocol's heavy library."""

from abc import abstractmethod
from typing import Any, Protocol

from recollect.api.auth.whose import Whose
from recollect.api.mcp.tools import Json


class Door(Protocol):
    """What is behind the server: the memory itself, or the service that has it open."""

    @abstractmethod
    def whose(self, request: Any) -> Whose:
        """Return whose memory `request` is about: the HTTP request of this very call, or None over stdio."""
        ...

    @abstractmethod
    async def call(self, whose: Whose, name: str, arguments: Json) -> Json:
        """Call a tool."""
        ...

    @abstractmethod
    async def profile(self, whose: Whose) -> str:
        """Return what is always known of the user, as JSON."""
        ...
