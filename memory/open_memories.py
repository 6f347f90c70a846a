"""Open memories, shared by the agents of one process: DATA_DIR has one owner, however many agents there are."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from memory.mem_config import MemoryConfig
from memory.memory import Memory
from memory.opening import open_memory

Key = tuple[int, MemoryConfig]


@dataclass
class _Shared:
    closer: AsyncExitStack = field(default_factory=AsyncExitStack)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    memory: Memory | None = None
    users: int = 0


class OpenMemories:
    """Opens a configuration's memory for its first user and closes it behind its last, per event loop."""

    def __init__(self) -> None:
        self._shared: dict[Key, _Shared] = {}

    async def acquire(self, config: MemoryConfig) -> Memory:
        """The configuration's open memory; give it back with `release`."""
        shared = self._shared.setdefault(_key(config), _Shared())
        shared.users += 1
        try:
            async with shared.lock:
                if shared.memory is None:
                    shared.memory = await shared.closer.enter_async_context(open_memory(config))
                return shared.memory
        except BaseException:
            await self._leave(config, shared)
            raise

    async def release(self, memory: Memory) -> None:
        """Give a memory back that `acquire` gave."""
        await self._leave(memory.config, self._shared[_key(memory.config)])

    async def _leave(self, config: MemoryConfig, shared: _Shared) -> None:
        async with shared.lock:
            shared.users -= 1
            if shared.users == 0:
                shared.memory = None
                await shared.closer.aclose()
                if shared.users == 0:
                    self._shared.pop(_key(config), None)


def _key(config: MemoryConfig) -> Key:
    return id(asyncio.get_running_loop()), config
