"""A sweep goes on whatever its work raises, and ends when it is told to."""

import asyncio
import logging

import pytest

from recollect.memory.background.sweep import Sweep
from recollect.memory.values.errors import StoreUnavailable
from tests.domain.support.updating import eventually


async def test_it_outlives_what_its_work_raises(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Exception] = [StoreUnavailable(), ValueError("a bug")]
    done = 0

    async def work() -> None:
        nonlocal done
        if errors:
            raise errors.pop(0)
        done += 1

    sweep = Sweep("test-sweep", work, seconds=0.001)
    with caplog.at_level(logging.WARNING):
        sweep.start()
        await eventually(lambda: done >= 2)
        await sweep.close()
    assert [getattr(record, "action", None) for record in caplog.records] == ["sweep_failed", "sweep_broke"]
    ended = done
    await asyncio.sleep(0.01)  # Ten times as long as it pauses.
    assert done == ended


async def test_closing_ends_it_in_the_midst_of_its_work() -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await gate.wait()

    sweep = Sweep("test-sweep", work, seconds=1)
    sweep.start()
    await begun.wait()
    async with asyncio.timeout(5):
        await sweep.close()
