"""`recollect learn --failed`: tries failed updates again."""

import asyncio

from rich.console import Console

from api.commands.owner import answer, service
from memory.mem_config import MemoryConfig
from memory.opening import open_memory
from memory.replay import replay_failed


def learn_failed(config: MemoryConfig) -> int:
    """Replay and show how it ended; the exit code: 1 where some have failed again."""
    with service(config) as client:
        if client is None:
            said = asyncio.run(_replay(config))
        else:
            said = answer(client.post("/api/admin/learn", json={"failed": True}))
    Console(soft_wrap=True).print(
        f"Tried {said['replayed']} failed updates again: {said['done']} done, {said['failed']} failed again, "
        f"{said['pending']} still pending.",
        highlight=False,
    )
    return 1 if said["failed"] else 0


async def _replay(config: MemoryConfig) -> dict[str, int]:
    async with open_memory(config) as memory:
        replayed = await replay_failed(memory.documents, memory.updater, seconds=config.memory_wait_seconds)
        return replayed.as_json()
