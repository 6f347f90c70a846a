"""The event loop of this process's own memories, in a thread of its own."""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_STOP_SECONDS = 20.0
"""The longest time that the end of the process waits for the loop's."""


class MemoryLoop:
    """Runs coroutines in one event loop, whichever thread or loop they come from.

    Clients of stores belong to one loop, and DATA_DIR has one owner: here all fronts of a process share them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ending: asyncio.Event | None = None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop, and wait for it in this thread, even inside a running event loop."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "This is the memory's own loop, which cannot wait for itself; await a MemoryAgent in it."
            )
        future = self._submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # an interrupted caller wants no answer any more
            raise

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop, and await it in the caller's."""
        if threading.current_thread() is self._thread:
            return await work
        return await asyncio.wrap_future(self._submit(work))

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._started())

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                started = threading.Event()
                self._thread = threading.Thread(
                    target=lambda: asyncio.run(self._serve(started)), name="recollect-memory", daemon=True
                )
                self._thread.start()
                started.wait()
                atexit.register(self._stop)
            assert self._loop is not None
            return self._loop

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        started.set()
        await self._ending.wait()

    def _stop(self) -> None:
        """End the loop, which closes what is open in it."""
        if self._loop is not None and self._ending is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(_STOP_SECONDS)

    def forget(self) -> None:
        """Forget the thread: a forked process has none, and starts its own."""
        self.__init__()


memory_loop = MemoryLoop()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=memory_loop.forget)
