"""A process that reindexes the stores in its folder and prints its progress, slowly enough to be killed meanwhile."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from recollect.memory.index.reindexing import reindex
from tests.domain.support.indexed import CountingEmbedder, open_documents, open_index


class SlowEmbedder(CountingEmbedder):
    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        await asyncio.sleep(0.02)
        return await super().embed_documents(texts)


async def rebuild(folder: Path) -> None:
    async with open_documents(folder) as store, open_index(folder) as index:
        await reindex(store, index, SlowEmbedder(), progress=tell)


def tell(done: int, total: int) -> None:
    sys.stdout.write(f"{done} {total}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(rebuild(Path(sys.argv[1])))
