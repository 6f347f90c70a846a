"""Queues the turns of each thread within one process: one runs at a time, in the order of the calls."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from typing_extensions import override

from recollect.memory.ports.thread_queue import Hold, ThreadQueue
from recollect.memory.values.errors import ThreadBusy
from recollect.memory.values.scope import Scope

_Line = deque[asyncio.Future[None]]


class LocalThreadQueue(ThreadQueue):
    """A first-in, first-out queue for each thread of each user. An idle thread takes no memory.

    A thread is held while its key is in `_lines`; its line holds those who wait, oldest first.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], _Line] = {}

    def __len__(self) -> int:
        """Return how many threads are held."""
        return len(self._lines)

    def is_awaited(self, scope: Scope) -> bool:
        """Tell whether somebody waits for the thread."""
        return bool(self._lines.get((scope.user_id, scope.thread)))

    @override
    @asynccontextmanager
    async def turn(self, scope: Scope, *, wait_seconds: float, reply_id: str | None = None) -> AsyncGenerator[Hold]:
        """Hold the thread for one turn.

        Raises:
            ThreadBusy: the thread did not come free within `wait_seconds`.
        """
        key = (scope.user_id, scope.thread)
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = deque()
        else:
            await self._wait(key, line, wait_seconds)
        try:
            yield Hold()
        finally:
            self._pass_on(key)

    async def _wait(self, key: tuple[str, str], line: _Line, wait_seconds: float) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(place)
        try:
            async with asyncio.timeout(wait_seconds):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled():
                self._pass_on(key)  # The thread came free at the moment of the timeout: pass it on to the next waiter.
            else:
                with suppress(ValueError):
                    line.remove(place)
            if isinstance(error, TimeoutError):
                raise ThreadBusy from error
            raise

    def _pass_on(self, key: tuple[str, str]) -> None:
        line = self._lines[key]
        while line:
            place = line.popleft()
            if not place.done():
                place.set_result(None)
                return
        del self._lines[key]
