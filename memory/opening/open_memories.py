"""Shares open memories among the agents of one process: DATA_DIR has one owner, however many agents use it."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.values.mem_config import MemoryConfig

Key = tuple[int, MemoryConfig]


@dataclass
class _Shared:
    """Holds one open memory, and counts the agents that use it or wait for it."""

    closer: AsyncExitStack = field(default_factory=AsyncExitStack)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    memory: Memory | None = None
    users: int = 0


class OpenMemories:
    """Opens a configuration's memory for the first agent and closes it after the last, once in each event loop."""

    def __init__(self) -> None:
        self._shared: dict[Key, _Shared] = {}

    async def acquire(self, config: MemoryConfig) -> Memory:
        """Return the configuration's open memory, and open it for the first; every call needs one `release`."""
        shared = self._shared.setdefault(_key(config), _Shared())
        # Count before waiting for the lock: the memory is not closed while somebody is about to use it.
        shared.users += 1
        try:
            async with shared.lock:
                if shared.memory is None:
                    shared.memory = await shared.closer.enter_async_context(open_memory(config))
                return shared.memory
        except BaseException:
            await self._leave(config, shared)
            raise

    async def release(self, config: MemoryConfig) -> None:
        """Give back a memory from `acquire`; the last one closes it."""
        await self._leave(config, self._shared[_key(config)])

    async def _leave(self, config: MemoryConfig, shared: _Shared) -> None:
        """Count one agent less, and close the memory behind the last."""
        async with shared.lock:
            shared.users -= 1
            if shared.users == 0:
                shared.memory = None
                await shared.closer.aclose()
                # While it closed, another agent may have come: that one waits for the lock and opens it again.
                if shared.users == 0:
                    self._shared.pop(_key(config), None)


def _key(config: MemoryConfig) -> Key:
    """Return a key by loop and configuration: clients of stores are bound to the loop that opened them."""
    return id(asyncio.get_running_loop()), config
