"""A process that erases a user from an embedded index, and may be killed at it."""

import asyncio
import sys
from pathlib import Path

from recollect.memory.values.scope import Scope
from tests.contracts.index.test_edge import opened


async def erase(folder: Path) -> None:
    async with opened(folder) as index:
        print("erasing", flush=True)  # noqa: T201 - the test waits for it
        await index.erase(Scope("adasecret"))


if __name__ == "__main__":
    asyncio.run(erase(Path(sys.argv[1])))
