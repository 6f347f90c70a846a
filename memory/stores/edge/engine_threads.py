"""Runs the engine's calls: in a thread that writes, in a thread that reads, or on the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.stores.edge.running import Running
from recollect.memory.stores.edge.shard import engine_errors
from recollect.memory.values.errors import IndexUnavailable

Answer = TypeVar("Answer")


class EngineThreads:
    """The threads of one shard, of which one writes and one reads: the engine allows reading while it writes.

    Short calls run on the event loop where they may (`SHORT_CALLS`): a thread would hold the interpreter's lock for as
    long, and its hop takes longer. While a long call runs, they run in the threads too: a loop that never waits leaves
    a thread the interpreter for moments in which it seldom gets hold of it. All calls raise IndexUnavailable where the
    engine or the system refuses, and after `close`.
    """

    def __init__(self, running: Running) -> None:
        self._running = running
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="edge-writer")
        # The engine holds the interpreter's lock while it searches: a second reader would only wait for it.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="edge-reader")
        self._writes = 0  # that run in the writer's thread, or wait there
        self._closing: asyncio.Future[None] | None = None

    async def write(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` in the thread that writes."""
        return await self._running.wait_for(self._write(work))

    async def read(self, work: Callable[[], Answer]) -> Answer:
        """Run `work` in the thread that reads."""
        return await self._running.wait_for(_submitted(self._reader, work))

    async def read_aside(self, work: Callable[[], Answer]) -> Answer:
        """Run `work`, which is mostly short, in the thread that reads; short calls go on beside it."""
        return await _submitted(self._reader, work)

    async def read_shortly(self, work: Callable[[], Answer]) -> Answer:
        """Run `work`, which is short, at once, or in the thread that reads."""
        return self._at_once(work) if await self._may_run_at_once() else await _submitted(self._reader, work)

    async def write_shortly(self, work: Callable[[], Answer]) -> Answer:
        """Run `work`, which is short, at once, or in the thread that writes; never beside another write."""
        may_run = await self._may_run_at_once() and not self._writes
        return self._at_once(work) if may_run else await self._write(work)

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

    async def _write(self, work: Callable[[], Answer]) -> Answer:
        ended = _submitted(self._writer, work)
        self._writes += 1
        ended.add_done_callback(self._count_down)
        return await asyncio.shield(ended)  # the write of a caller that is cancelled goes on, and counts until its end

    def _count_down(self, _: "asyncio.Future[Answer]") -> None:
        self._writes -= 1

    async def _may_run_at_once(self) -> bool:
        if not SHORT_CALLS.on_loop:
            return False
        await asyncio.sleep(0)  # whoever does much in a row leaves the loop to others in between
        return not self._running.calls

    def _at_once(self, work: Callable[[], Answer]) -> Answer:
        if self._closing is not None:
            raise IndexUnavailable
        return _translated(work)


def _submitted(thread: ThreadPoolExecutor, work: Callable[[], Answer]) -> "asyncio.Future[Answer]":
    try:
        return asyncio.wrap_future(thread.submit(lambda: _translated(work)))
    except RuntimeError as error:  # it is shut down
        raise IndexUnavailable from error


def _translated(work: Callable[[], Answer]) -> Answer:
    """Run `work` and translate the engine's errors, here alone."""
    try:
        with engine_errors():
            return work()
    except OSError as error:  # from `PrivateFolder.check`
        raise IndexUnavailable from error
