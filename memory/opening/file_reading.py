"""Opens the reader of files, and asks it early what stands around the process that reads them."""

import asyncio
from contextlib import AsyncExitStack

from recollect.memory.background.bulk import Bulk
from recollect.memory.ports.document_reader import DocumentReader
from recollect.memory.providers.reading.limits import ReadingLimits
from recollect.memory.providers.reading.reader import FileReader
from recollect.memory.values.mem_config import MemoryConfig


def open_reader(stack: AsyncExitStack, config: MemoryConfig, bulk: Bulk, *, is_asked: bool) -> DocumentReader:
    """Return the reader. `is_asked`: its child process tells its walls, for /health, while the start goes on."""
    limits = ReadingLimits(
        config.max_document_pages, config.max_document_characters, config.max_unpacked_mb * 1_000_000
    )
    reader = FileReader(limits, bulk)
    if is_asked:
        asking = asyncio.create_task(reader.walls(), name="reader-walls")
        stack.push_async_callback(_end, asking)
    return reader


async def _end(asking: "asyncio.Task[object]") -> None:
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
