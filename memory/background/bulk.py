"""Bulk work: imports, parsing of files, packing of archives, in threads of its own.

The pool behind `asyncio.to_thread` serves every route of every user: a few large files would keep all of them waiting.
Here a few threads do the large work item by item, and callers beyond the bound are refused at once.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeVar

from recollect.memory.values.errors import Busy, Stopping

Item = TypeVar("Item")
Answer = TypeVar("Answer")

WORKERS = 2
QUEUE = 16
"""How many callers may wait for a thread; `Bulk.place` refuses more."""


@dataclass(eq=False)
class _BulkJob:
    """One piece of work with the future of its caller. Its thread reads `is_given_up` between two items."""

    work: Callable[["_BulkJob"], Any]
    waiter: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    is_given_up: bool = False

    def do(self) -> None:
        """Run the work in a thread and pass its result, or its error, to the caller's event loop."""
        answer: Any = None
        problem: BaseException | None = None
        try:
            answer = self.context.run(self.work, self)
        except BaseException as error:
            problem = error
        with contextlib.suppress(RuntimeError):  # The loop has ended: nobody waits any more.
            self.loop.call_soon_threadsafe(self._settle, answer, problem)

    def _settle(self, answer: Any, problem: BaseException | None) -> None:
        if self.waiter.done():
            return
        if problem is None:
            self.waiter.set_result(answer)
        else:
            self.waiter.set_exception(problem)


class Bulk:
    """The worker threads, and the bound on callers. A thread starts with a job, up to `workers` of them.

    They are daemons, because a process that stops must not wait for a file that somebody sent.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self.workers = workers
        self._jobs = SimpleQueue[_BulkJob | None]()
        self._threads: list[threading.Thread] = []
        self._places: set[asyncio.Timeout] = set()
        self._is_stopped = False

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """Take one of the places for bulk work until the context ends.

        Raises:
            Busy: all `workers` + QUEUE places are taken.
            Stopping: the service stops; work inside is cancelled.
        """
        if self._is_stopped:
            raise Stopping
        if len(self._places) >= self.workers + QUEUE:
            raise Busy
        # A timeout without a deadline: `stop` gives it one of the past, which cancels whatever waits inside.
        scope = asyncio.timeout(None)
        self._places.add(scope)
        try:
            async with scope:
                yield
        except TimeoutError:
            if scope.expired():
                raise Stopping from None
            raise
        finally:
            self._places.discard(scope)

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Return the result of `work`, done in one of the threads; if cancelled before it began, it never begins."""
        return await self._done(lambda _: work())

    async def each(self, work: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """Return the results of `work` for `items`; if cancelled, it ends after the current item."""

        def every(job: _BulkJob) -> list[Answer]:
            answers: list[Answer] = []
            for item in items:
                if job.is_given_up:
                    break
                answers.append(work(item))
            return answers

        return await self._done(every)

    def stop(self) -> None:
        """Refuse new places, and cancel the work of those that have one."""
        if self._is_stopped:
            return
        self._is_stopped = True
        for scope in list(self._places):
            scope.reschedule(0)

    def close(self) -> None:
        """Let the threads end after the jobs in the queue, without waiting for them."""
        self.stop()
        for _ in self._threads:
            self._jobs.put(None)
        self._threads = []

    async def _done(self, work: Callable[[_BulkJob], Answer]) -> Answer:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Answer] = loop.create_future()
        job = _BulkJob(work, waiter, loop)
        self._begin()
        self._jobs.put(job)
        try:
            return await waiter
        finally:
            job.is_given_up = True  # A thread cannot be cancelled: it reads this before the job and between items.

    def _begin(self) -> None:
        if len(self._threads) < self.workers:
            name = f"bulk-{len(self._threads)}"
            thread = threading.Thread(target=_serve, args=(self._jobs,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()


def _serve(jobs: "SimpleQueue[_BulkJob | None]") -> None:
    while (job := jobs.get()) is not None:
        if not job.is_given_up:
            job.do()
        del job  # Its data may be large, and `get` may wait for long.
