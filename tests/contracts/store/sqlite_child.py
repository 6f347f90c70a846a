"""A process that commits turns, says each acknowledged one on its standard output, and goes on until it is killed."""

import asyncio
import sys
from pathlib import Path

from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.update import owed
from tests.contracts.store.samples import finish


async def commit_turns(path: Path, life: str) -> None:
    async with open_sqlite_store(path) as store:
        for number in range(1_000_000):
            exchange = await finish(store, f"{life}-{number}", update=owed())
            sys.stdout.write(exchange.user.turn_id + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(commit_turns(Path(sys.argv[1]), sys.argv[2]))
