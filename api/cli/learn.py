"""`recollect learn`: retries failed updates, or shows the prompt of a turn's extraction."""

import asyncio
from typing import Any
from urllib.parse import quote

from rich.console import Console

from recollect.api.cli.owner import read_answer, service
from recollect.api.cli.terminal.plain_text import safe
from recollect.memory.opening.opening import open_memory
from recollect.memory.values.mem_config import MemoryConfig


def learn_failed(config: MemoryConfig) -> int:
    """Retry failed updates and show how they ended; return the exit code: 1 where some have failed again."""
    with service(config) as client:
        if client is None:
            said = asyncio.run(_replay(config))
        else:
            said = read_answer(client.post("/api/admin/learn", json={"failed": True}))
    Console(soft_wrap=True).print(
        f"Tried {said['replayed']} failed updates again: {said['done']} done, {said['failed']} failed again, "
        f"{said['pending']} still pending.",
        highlight=False,
    )
    return 1 if said["failed"] else 0


def show_prompt(config: MemoryConfig, *, user_id: str, turn_id: str) -> None:
    """Print the prompt that would ask a model to learn from the turn; no model is called.

    Raises:
        NotFound, Refused: there is no such turn of this user.
    """
    with service(config) as client:
        if client is None:
            said = asyncio.run(_prompt(config, user_id, turn_id))
        else:
            said = read_answer(client.get(f"/api/admin/turns/{quote(turn_id)}/prompt", params={"user_id": user_id}))
    console = Console(soft_wrap=True)
    for message in said["messages"]:
        console.print(f"[{message['role']}]", markup=False, highlight=False)
        console.print(safe(message["content"]), highlight=False)


async def _prompt(config: MemoryConfig, user_id: str, turn_id: str) -> dict[str, Any]:
    async with open_memory(config) as memory:
        return await memory.turns.prompt(user_id, turn_id)


async def _replay(config: MemoryConfig) -> dict[str, int]:
    async with open_memory(config) as memory:
        replayed = await memory.operations.replay_failed()
        return replayed.as_json()
