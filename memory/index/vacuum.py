"""Removes deleted and forgotten texts from the index's files on this machine, within a bounded time."""

import logging

from recollect.memory.background.sweep import Sweep
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.errors import IndexUnavailable

logger = logging.getLogger(__name__)

MOST_BETWEEN = 30.0
"""The longest time between two checks, in seconds. A check reads the times of two files."""
LOOKS = 20
"""How many checks there are within the time that deleted text may stay."""


class IndexVacuum:
    """Lets the index rewrite its files when that is due; `seconds` is the time that deleted text may stay in them."""

    def __init__(self, index: VectorIndex, *, seconds: float) -> None:
        self._index = index
        self._seconds = seconds
        self._sweep = Sweep("index-vacuum", self._vacuum, seconds=min(MOST_BETWEEN, seconds / LOOKS))

    def start(self) -> None:
        """Start the checks, which also find what an earlier process deleted."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop the checks; a rewrite that is due is made after the next start."""
        await self._sweep.close()

    async def _vacuum(self) -> None:
        try:
            done = await self._index.vacuum(self._seconds)
        except IndexUnavailable:
            return  # searches report the outage
        if done:
            logger.info("the index's files were written anew", extra={"action": "index_vacuumed"})
