"""A sweep: work that is repeated at an interval, in a task of its own that survives errors."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from recollect.memory.values.errors import StoreUnavailable

logger = logging.getLogger(__name__)

CANCEL_SECONDS = 1.0


class Sweep:
    """Runs `work` every `seconds`, from `start` to `close`. `name` names the task, also in the log."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]], *, seconds: float) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task, which runs the work at once."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def close(self) -> None:
        """End the task, cancelling work that is running."""
        if self._task is not None:
            await end_tasks(self._task)

    async def _run(self) -> None:
        while True:
            try:
                await self._work()
            except StoreUnavailable:
                logger.warning("a sweep waits for a store", extra={"action": "sweep_failed", "sweep": self._name})
            except Exception:
                # The boundary of the task: an error must not end it, because nothing else repeats its work.
                logger.exception("a sweep broke", extra={"action": "sweep_broke", "sweep": self._name})
            await asyncio.sleep(self._seconds)


async def end_tasks(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel the tasks until all have ended.

    Once is not enough: `asyncio.wait_for`, with which drivers wait, drops a cancellation that comes at the moment of
    the result (Python 3.11), and a task that repeats its work would go on.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)  # what they raised is theirs; nobody else asks for it
