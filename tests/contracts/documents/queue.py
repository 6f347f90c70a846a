import asyncio
from dataclasses import dataclass, field

import pytest

from memory.documents import Documents, ThreadQueue
from memory.errors import ThreadBusy
from memory.scope import Scope

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
    async def test_turns_run_one_at_a_time_in_order_of_arrival(self, documents: Documents):
        runs = Runs()
        await asyncio.gather(*(runs.turn(documents.queue, number) for number in range(50)))
        assert runs.order == list(range(50))

    async def test_a_free_thread_does_not_wait(self, documents: Documents):
        for _ in range(3):
            async with documents.queue.turn(T1, wait_seconds=0):
                pass

    async def test_a_busy_thread_leaves_the_queue_intact(self, documents: Documents):
        runs = Runs()
        async with documents.queue.turn(T1, wait_seconds=1):
            patient = asyncio.create_task(runs.turn(documents.queue, 1))
            await started(patient)
            with pytest.raises(ThreadBusy):
                await runs.turn(documents.queue, 2, wait_seconds=0.05)
            last = asyncio.create_task(runs.turn(documents.queue, 3))
            await started(last)
            assert runs.order == []
        await asyncio.gather(patient, last)
        assert runs.order == [1, 3]
        await runs.turn(documents.queue, 4, wait_seconds=0)

    async def test_threads_and_users_do_not_block_each_other(self, documents: Documents):
        async with (
            documents.queue.turn(T1, wait_seconds=0),
            documents.queue.turn(Scope("ada", "t2"), wait_seconds=0),
            documents.queue.turn(Scope("bob", "t1"), wait_seconds=0),
        ):
            with pytest.raises(ThreadBusy):
                await Runs().turn(documents.queue, 1, wait_seconds=0)

    async def test_a_cancelled_waiter_is_passed_over(self, documents: Documents):
        runs = Runs()
        async with documents.queue.turn(T1, wait_seconds=1):
            tasks = [asyncio.create_task(runs.turn(documents.queue, number)) for number in range(3)]
            await started(*tasks)
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
        await asyncio.gather(tasks[0], tasks[2])
        assert runs.order == [0, 2]

    async def test_a_cancelled_holder_frees_the_thread(self, documents: Documents):
        inside = asyncio.Event()

        async def hold() -> None:
            async with documents.queue.turn(T1, wait_seconds=1):
                inside.set()
                await asyncio.Event().wait()

        holder = asyncio.create_task(hold())
        await inside.wait()
        runs = Runs()
        waiter = asyncio.create_task(runs.turn(documents.queue, 1))
        await started(waiter)
        holder.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder
        await waiter
        assert runs.order == [1]

    async def test_a_waiter_cancelled_as_its_turn_comes_passes_it_on(self, documents: Documents):
        runs = Runs()
        async with documents.queue.turn(T1, wait_seconds=1):
            tasks = [asyncio.create_task(runs.turn(documents.queue, number)) for number in range(2)]
            await started(*tasks)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await tasks[1]
        assert runs.order[-1] == 1

    async def test_an_error_in_a_turn_frees_the_thread(self, documents: Documents):
        with pytest.raises(ZeroDivisionError):
            async with documents.queue.turn(T1, wait_seconds=0):
                raise ZeroDivisionError
        await Runs().turn(documents.queue, 1, wait_seconds=0)
