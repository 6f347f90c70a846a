import asyncio
from dataclasses import dataclass, field

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.ports.thread_queue import ThreadQueue
from recollect.memory.values.errors import ThreadBusy
from recollect.memory.values.scope import Scope

T1 = Scope("ada", "t1")


@dataclass
class Runs:
    """Turns that note their order and that no two of them overlap."""

    order: list[int] = field(default_factory=list[int])
    running: int = 0

    async def turn(self, queue: ThreadQueue, number: int, scope: Scope = T1, wait_seconds: float = 20) -> None:
        async with queue.turn(scope, wait_seconds=wait_seconds):
            self.running += 1
            assert self.running == 1, "two turns of one thread ran at once"
            try:
                await asyncio.sleep(0)
                self.order.append(number)
            finally:
                self.running -= 1


async def started(*tasks: "asyncio.Task[None]") -> None:
    """Let the tasks run up to their first wait, so that they arrive in this order."""
    for _ in tasks:
        await asyncio.sleep(0)


class QueueContract:
    async def test_turns_run_one_at_a_time_in_order_of_arrival(self, store: Store):
        runs = Runs()
        await asyncio.gather(*(runs.turn(store.queue, number) for number in range(50)))
        assert runs.order == list(range(50))

    async def test_a_free_thread_does_not_wait(self, store: Store):
        for _ in range(3):
            async with store.queue.turn(T1, wait_seconds=0):
                pass

    async def test_a_busy_thread_leaves_the_queue_intact(self, store: Store):
        runs = Runs()
        async with store.queue.turn(T1, wait_seconds=1):
            patient = asyncio.create_task(runs.turn(store.queue, 1))
            await started(patient)
            with pytest.raises(ThreadBusy):
                await runs.turn(store.queue, 2, wait_seconds=0.05)
            last = asyncio.create_task(runs.turn(store.queue, 3))
            await started(last)
            assert runs.order == []
        await asyncio.gather(patient, last)
        assert runs.order == [1, 3]
        await runs.turn(store.queue, 4, wait_seconds=0)

    async def test_threads_and_users_do_not_block_each_other(self, store: Store):
        async with (
            store.queue.turn(T1, wait_seconds=0),
            store.queue.turn(Scope("ada", "t2"), wait_seconds=0),
            store.queue.turn(Scope("bob", "t1"), wait_seconds=0),
        ):
            with pytest.raises(ThreadBusy):
                await Runs().turn(store.queue, 1, wait_seconds=0)

    async def test_a_cancelled_waiter_is_passed_over(self, store: Store):
        runs = Runs()
        async with store.queue.turn(T1, wait_seconds=1):
            tasks = [asyncio.create_task(runs.turn(store.queue, number)) for number in range(3)]
            await started(*tasks)
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
        await asyncio.gather(tasks[0], tasks[2])
        assert runs.order == [0, 2]

    async def test_a_cancelled_holder_frees_the_thread(self, store: Store):
        inside = asyncio.Event()

        async def hold() -> None:
            async with store.queue.turn(T1, wait_seconds=1):
                inside.set()
                await asyncio.Event().wait()

        holder = asyncio.create_task(hold())
        await inside.wait()
        runs = Runs()
        waiter = asyncio.create_task(runs.turn(store.queue, 1))
        await started(waiter)
        holder.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder
        await waiter
        assert runs.order == [1]

    async def test_a_waiter_cancelled_as_its_turn_comes_passes_it_on(self, store: Store):
        runs = Runs()
        async with store.queue.turn(T1, wait_seconds=1):
            tasks = [asyncio.create_task(runs.turn(store.queue, number)) for number in range(2)]
            await started(*tasks)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await tasks[1]
        assert runs.order[-1] == 1

    async def test_an_error_in_a_turn_frees_the_thread(self, store: Store):
        with pytest.raises(ZeroDivisionError):
            async with store.queue.turn(T1, wait_seconds=0):
                raise ZeroDivisionError
        await Runs().turn(store.queue, 1, wait_seconds=0)
