"""A keyed worker: background work that is woken by key, done by one task a key, and retried until it succeeds."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Hashable
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from recollect.memory.values.errors import is_outage
from recollect.memory.values.update import MAX_ATTEMPTS, backoff

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class _KeyedJob:
    """The state of one key's work: whether another try is wanted, and whether somebody waits for it (`urgent`).

    `next_try` is set when the next try to begin has ended. `tries` and `failures` (tries that no outage excuses) count
    since the last success.
    """

    is_wanted: bool = False
    urgent: asyncio.Event = field(default_factory=asyncio.Event)
    next_try: asyncio.Event = field(default_factory=asyncio.Event)
    tries: int = 0
    failures: int = 0

    @contextmanager
    def trying(self) -> Generator[None]:
        """Mark the beginning and the end of a try.

        From its beginning on a wake asks for one more: this try may have read already what the wake is about.
        """
        self.is_wanted = False
        self.urgent.clear()
        ended, self.next_try = self.next_try, asyncio.Event()
        try:
            yield
        finally:
            ended.set()

    async def rest(self, seconds: float) -> None:
        """Wait `seconds` before the next try, or until somebody waits for it."""
        self.is_wanted = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self.urgent.wait(), seconds)


def _pause(tries: int) -> float:
    return backoff(tries, random.random()).total_seconds()


class KeyedWorker(Generic[Key]):
    """Does `work(key)` in the background, each key in one task at a time and `at_once` keys at the same time.

    A try that fails is passed to `failed`, which says so, and repeated after `pause(tries)` seconds for as long as an
    outage lasts. After `MAX_ATTEMPTS` other failures in a row `give_up`, where there is one, takes the work's place.
    Nothing is stored here: whoever wakes a key has to find it again after a restart. `name` names the tasks.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Key], Awaitable[None]],
        *,
        at_once: int,
        failed: Callable[[Key, Exception], None],
        give_up: Callable[[Key, Exception], Awaitable[None]] | None = None,
        pause: Callable[[int], float] = _pause,
    ) -> None:
        self._name = name
        self._work = work
        self._slots = asyncio.Semaphore(at_once)
        self._failed = failed
        self._give_up = give_up
        self._pause = pause
        self._jobs: dict[Key, _KeyedJob] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._closing = False

    def wake(self, key: Key) -> None:
        """Have the key's work done, once more where it is under way. A key that waits for its retry goes on waiting."""
        if self._closing:
            return
        if key not in self._jobs:
            job = self._jobs[key] = _KeyedJob()
            self._tasks[key] = asyncio.create_task(self._run(key, job), name=self._name)
        self._jobs[key].is_wanted = True

    async def hurry(self, key: Key, *, seconds: float) -> None:
        """Have the key's work tried now, and wait for the end of that try, no longer than `seconds`.

        It waits neither for the end of a back-off nor for one of the `at_once` places, because a caller waits for it.
        """
        self.wake(key)
        if (job := self._jobs.get(key)) is None:
            return
        job.urgent.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(job.next_try.wait(), seconds)

    def is_busy(self, key: Key) -> bool:
        """Tell whether the key's work is under way, or waits for a place or its retry."""
        return key in self._jobs

    async def settled(self, key: Key, *, seconds: float) -> None:
        """Wait until nothing of the key's work is left, retries included, no longer than `seconds`."""
        if (task := self._tasks.get(key)) is not None:
            await asyncio.wait({task}, timeout=seconds)

    async def close(self) -> None:
        """Cancel all work, and do none from now on; those who wait for it are let go."""
        self._closing = True
        jobs, tasks = list(self._jobs.values()), list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for job in jobs:
            job.next_try.set()
        # A task that was cancelled before its first step has not removed itself.
        self._jobs.clear()
        self._tasks.clear()

    async def _run(self, key: Key, job: _KeyedJob) -> None:
        try:
            while job.is_wanted:
                async with self._slot(job):
                    with job.trying():
                        is_done = await self._try(key, job)
                if not is_done:
                    await job.rest(self._pause(job.tries))
        finally:
            # Without an await after the last look at `is_wanted`: a wake either finds this job and is seen, or finds
            # none and makes another.
            del self._jobs[key], self._tasks[key]

    @asynccontextmanager
    async def _slot(self, job: _KeyedJob) -> AsyncGenerator[None]:
        """Take one of the `at_once` places, or none where somebody waits for the job."""
        taken = asyncio.ensure_future(self._slots.acquire())
        hurried = asyncio.ensure_future(job.urgent.wait())
        try:
            await asyncio.wait({taken, hurried}, return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            hurried.cancel()
            if taken.done() and not taken.cancelled():
                self._slots.release()
            taken.cancel()

    async def _try(self, key: Key, job: _KeyedJob) -> bool:
        """Do the work once, or give it up after too many failures; return False where it has to be tried again."""
        try:
            await self._work(key)
        except Exception as error:  # the boundary of the task: whatever it was, the work is tried again
            self._failed(key, error)
            job.tries += 1
            job.failures += not is_outage(error)
            if not await self._is_given_up(key, job, error):
                return False
        job.tries = job.failures = 0
        return True

    async def _is_given_up(self, key: Key, job: _KeyedJob, error: Exception) -> bool:
        if self._give_up is None or job.failures < MAX_ATTEMPTS:
            return False
        try:
            await self._give_up(key, error)
        except Exception as another:  # the boundary of the task
            self._failed(key, another)
            return False
        return True
