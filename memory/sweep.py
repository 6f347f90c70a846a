"""A sweep: work that is done at once and then again and again, in a task of its own that outlives what goes wrong."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from memory.errors import StoreUnavailable

logger = logging.getLogger(__name__)


class Sweep:
    """Does `work` every `seconds`, from `start` to `close`. `name` is the task's, and the log's."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]], *, seconds: float) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin: the first time is now."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def close(self) -> None:
        """End, in the midst of the work if need be."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._work()
            except StoreUnavailable:
                logger.warning("a sweep waits for a store", extra={"action": "sweep_failed", "sweep": self._name})
            except Exception:
                # The boundary of the task: what it looks after is looked after for as long as the process runs.
                logger.exception("a sweep broke", extra={"action": "sweep_broke", "sweep": self._name})
            await asyncio.sleep(self._seconds)
