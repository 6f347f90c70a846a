"""Short calls of the engine run on the event loop, all in threads beside a long one, and writes one at a time."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator

import pytest

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.stores.edge.engine_threads import EngineThreads
from recollect.memory.stores.edge.running import Running
from recollect.memory.values.errors import IndexUnavailable

LOOP = threading.main_thread().name


def name() -> str:
    return threading.current_thread().name


@pytest.fixture(autouse=True)
def on_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHORT_CALLS, "on_loop", True)


@pytest.fixture
async def threads() -> AsyncGenerator[EngineThreads]:
    opened = EngineThreads(Running())
    yield opened
    await opened.close(lambda: None)


async def test_short_calls_run_on_the_loop_and_in_threads_beside_a_long_one(threads: EngineThreads) -> None:
    may_end = threading.Event()
    assert await threads.read_shortly(name) == await threads.write_shortly(name) == LOOP

    reading = asyncio.create_task(threads.read_aside(lambda: may_end.wait(20)))
    await asyncio.sleep(0)
    assert await threads.read_shortly(name) == LOOP
    may_end.set()
    await reading

    may_end.clear()
    writing = asyncio.create_task(threads.write(lambda: may_end.wait(20)))
    await asyncio.sleep(0)
    assert (await threads.read_shortly(name)).startswith("edge-reader")
    waiting = asyncio.create_task(threads.write_shortly(name))
    may_end.set()
    assert await writing
    assert (await waiting).startswith("edge-writer")
    assert await threads.write_shortly(name) == LOOP


async def test_where_the_loop_is_another_s_all_calls_run_in_threads(
    threads: EngineThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SHORT_CALLS, "on_loop", False)
    assert (await threads.read_shortly(name)).startswith("edge-reader")
    assert (await threads.write_shortly(name)).startswith("edge-writer")


async def test_a_short_write_never_runs_beside_one_whose_caller_is_gone(threads: EngineThreads) -> None:
    may_end, done = threading.Event(), list[str]()

    def long() -> None:
        assert may_end.wait(20)
        done.append("long")

    writing = asyncio.create_task(threads.write(long))
    await asyncio.sleep(0)
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing
    short = asyncio.create_task(threads.write_shortly(lambda: done.append("short")))
    await threads.read_shortly(lambda: done.append("read"))
    may_end.set()
    await short
    assert done == ["read", "long", "short"]


async def test_nothing_runs_after_the_last_call() -> None:
    threads, done = EngineThreads(Running()), list[str]()
    await threads.close(lambda: done.append("last"))
    for call in (threads.read, threads.write, threads.read_aside, threads.read_shortly, threads.write_shortly):
        with pytest.raises(IndexUnavailable):
            await call(lambda: done.append("late"))
    await threads.close(lambda: done.append("again"))
    assert done == ["last"]
