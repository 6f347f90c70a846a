"""Recollect: an agent service that remembers, and its memory as a library.

`memory`, `graph`, `api` and `settings` in this package are links to the folders of those names beside it: in a checkout
they lie at the top, installed they are one package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.memory.agents.client import AsyncClient, Client
    from recollect.memory.mem_agent import MemoryAgent, SyncMemoryAgent
    from recollect.memory.mock_agent import MockMemoryAgent
    from recollect.memory.values.mem_config import MemoryConfig

__all__ = ["AsyncClient", "Client", "MemoryAgent", "MemoryConfig", "MockMemoryAgent", "SyncMemoryAgent"]

_MODULES = {
    "AsyncClient": "recollect.memory.agents.client",
    "Client": "recollect.memory.agents.client",
    "MemoryAgent": "recollect.memory.mem_agent",
    "MemoryConfig": "recollect.memory.values.mem_config",
    "MockMemoryAgent": "recollect.memory.mock_agent",
    "SyncMemoryAgent": "recollect.memory.mem_agent",
}


def __getattr__(name: str) -> Any:
    """Import a face of the library when it is first asked for: the service and the commands start without them."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
