"""A process that stores points, says each acknowledged one on its standard output, and goes on until it is killed."""

import asyncio
import sys
from pathlib import Path

from recollect.memory.stores.edge.index import open_edge_index
from tests.contracts.index.points import DIMENSION, MODEL, point


async def store(folder: Path, start: int) -> None:
    async with open_edge_index(folder, base="edge", model=MODEL, dimension=DIMENSION) as index:
        for number in range(start, start + 1_000_000, 2):
            pair = [point(number, turn_id=f"turn-{number}"), point(number + 1, turn_id=f"turn-{number + 1}")]
            await index.upsert(pair)
            sys.stdout.write(" ".join(item.entry.id for item in pair) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(store(Path(sys.argv[1]), int(sys.argv[2])))
