import asyncio

import pytest

from recollect.memory.stores.thread_queue import LocalThreadQueue
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.scope import Scope
from tests.contracts.store.suite.queue import Runs, started


async def test_an_idle_queue_keeps_nothing():
    queue, runs = LocalThreadQueue(), Runs()
    tasks = [asyncio.create_task(runs.turn(queue, number, wait_seconds=number % 3)) for number in range(30)]
    await started(tasks[0])
    assert len(queue) == 1
    for task in tasks[::4]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(queue) == 0
    assert runs.order == sorted(runs.order)
    assert runs.running == 0


async def test_a_turn_needs_a_thread():
    with pytest.raises(InvalidRequest):
        await Runs().turn(LocalThreadQueue(), 1, Scope("ada"))
