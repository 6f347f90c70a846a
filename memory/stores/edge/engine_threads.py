"""Runs the engine's calls: in a thread that writes, in a thread that reads, or on the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from recollect.memory.stores.edge.shard import engine_errors
from recollect.memory.values.errors import IndexUnavailable

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Running:
    """Counts the calls that run in threads, or wait there, of all collections that share it."""

    calls: int = 0

    async def wait_for(self, call: Awaitable[Answer]) -> Answer:
        """Wait for a call that runs in a thread."""
        self.calls += 1
        try:
            return await call
        finally:
            self.calls -= 1


class EngineThreads:
    """The threads of one shard. The engine allows reading while it writes; it closes at `closing`."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="edge-writer")
        # The engine holds the interpreter's lock while it searches: a second reader would only wait for it.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="edge-reader")
        self._closing: asyncio.Future[None] | None = None

    async def write(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` in the thread that writes.

        Raises:
            IndexUnavailable: the engine or the system refuses, or the threads are closed.
        """
        return await self._run(self._writer, work)

    async def read(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` in the thread that reads; it raises as `write` does."""
        return await self._run(self._reader, work)

    async def read_at_once(self, work: Callable[[], Answer]) -> Answer:
        """Run `work`, which is short and only reads, on the event loop; it raises as `write` does.

        A thread would hold the interpreter's lock for as long, and its hop takes longer. While threads have work, it
        runs in one too: a loop that never waits leaves them the interpreter for moments in which they seldom get it.
        """
        return await self._at_once(self._reader, work)

    async def write_at_once(self, work: Callable[[], Answer]) -> Answer:
        """Run `work`, which is short, on the event loop, or in the thread that writes while threads have work."""
        return await self._at_once(self._writer, work)

    async def close(self, last: Callable[[], None]) -> None:
        """Refuse further calls, wait for what runs, and run `last`. Whoever closes again waits for that too."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().run_in_executor(self._writer, lambda: self._end(last))
            self._writer.shutdown(wait=False)
        await asyncio.shield(self._closing)

    def give_up(self) -> None:
        """End the threads of a shard that could not be opened."""
        self._reader.shutdown(wait=False)
        self._writer.shutdown(wait=False)

    def _end(self, last: Callable[[], None]) -> None:
        self._reader.shutdown(wait=True)
        last()

    async def _at_once(self, thread: ThreadPoolExecutor, work: Callable[[], Answer]) -> Answer:
        await asyncio.sleep(0)  # whoever does much in a row leaves the loop to others in between
        if self._running.calls:
            return await self._run(thread, work)
        if self._closing is not None:
            raise IndexUnavailable
        return _translated(work)

    async def _run(self, thread: ThreadPoolExecutor, work: Callable[[], Answer]) -> Answer:
        try:
            future = thread.submit(lambda: _translated(work))
        except RuntimeError as error:  # it is shut down
            raise IndexUnavailable from error
        return await self._running.wait_for(asyncio.wrap_future(future))


def _translated(work: Callable[[], Answer]) -> Answer:
    """Run `work` and translate the engine's errors, here alone."""
    try:
        with engine_errors():
            return work()
    except OSError as error:  # from `PrivateFolder.check`
        raise IndexUnavailable from error
