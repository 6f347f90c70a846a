"""Work that is woken by key: once at a time for a key, bounded, retried, given up, awaited and ended."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from recollect.memory.background.keyed_worker import KeyedWorker
from recollect.memory.values.errors import StoreUnavailable
from tests.domain.support.updating import eventually

LONG = 10.0


@dataclass
class Work:
    """Work that can be held up and made to fail; it counts who is at it, and for which keys it was begun and done."""

    errors: dict[str, list[Exception]] = field(default_factory=dict[str, list[Exception]])
    gates: Mapping[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    begun: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    reported: list[tuple[str, Exception]] = field(default_factory=list[tuple[str, Exception]])
    at_work: dict[str, int] = field(default_factory=dict[str, int])
    most_keys: int = 0

    async def __call__(self, key: str) -> None:
        self.begun.append(key)
        self.at_work[key] = self.at_work.get(key, 0) + 1
        assert self.at_work[key] == 1
        self.most_keys = max(self.most_keys, sum(self.at_work.values()))
        try:
            if key in self.gates:
                await self.gates[key].wait()
            if errors := self.errors.get(key):
                raise errors.pop(0)
            self.done.append(key)
        finally:
            self.at_work[key] -= 1

    def report(self, key: str, error: Exception) -> None:
        self.reported.append((key, error))


def worker_of(work: Work, *, at_once: int = 8, pause: Callable[[int], float] = lambda tries: 0.0) -> KeyedWorker[str]:
    return KeyedWorker("test", work, at_once=at_once, failed=work.report, pause=pause)


async def test_a_key_woken_amid_its_work_is_worked_on_once_more() -> None:
    work = Work(gates={"a": asyncio.Event()})
    worker = worker_of(work)
    worker.wake("a")
    await eventually(lambda: work.begun == ["a"])
    for _ in range(3):
        worker.wake("a")
    work.gates["a"].set()
    await worker.settled("a", seconds=LONG)
    assert work.done == ["a", "a"]
    assert not worker.is_busy("a")


async def test_so_many_keys_are_worked_on_at_once_and_no_more() -> None:
    gate = asyncio.Event()
    work = Work(gates={str(number): gate for number in range(5)})
    worker = worker_of(work, at_once=2)
    for key in work.gates:
        worker.wake(key)
    await eventually(lambda: len(work.begun) == 2)
    gate.set()
    for key in work.gates:
        await worker.settled(key, seconds=LONG)
    assert sorted(work.done) == sorted(work.gates)
    assert work.most_keys == 2


async def test_whoever_waits_needs_no_place() -> None:
    work = Work(gates={"slow": asyncio.Event()})
    worker = worker_of(work, at_once=1)
    worker.wake("slow")
    await eventually(lambda: work.begun == ["slow"])
    worker.wake("a")
    await asyncio.sleep(0)
    assert work.begun == ["slow"]
    await worker.hurry("a", seconds=LONG)
    assert work.done == ["a"]
    work.gates["slow"].set()
    await worker.settled("slow", seconds=LONG)
    worker.wake("b")  # The place is free again, and is one.
    await worker.settled("b", seconds=LONG)
    assert work.done == ["a", "slow", "b"]


async def test_whoever_waits_is_answered_by_a_try_that_began_afterwards() -> None:
    work = Work(gates={"a": asyncio.Event()})
    worker = worker_of(work)
    worker.wake("a")
    await eventually(lambda: work.begun == ["a"])
    waiting = asyncio.create_task(worker.hurry("a", seconds=LONG))
    work.gates["a"].set()
    await waiting
    assert work.done == ["a", "a"]


async def test_nobody_waits_longer_than_they_said() -> None:
    work = Work(gates={"a": asyncio.Event()})
    worker = worker_of(work)
    await worker.hurry("a", seconds=0.01)
    await worker.settled("a", seconds=0.01)
    assert (work.begun, work.done) == (["a"], [])
    await worker.close()


async def test_a_failure_is_said_and_tried_again_after_a_growing_pause() -> None:
    pauses = list[int]()

    def pause(tries: int) -> float:
        pauses.append(tries)
        return 0.0

    errors: list[Exception] = [StoreUnavailable(), ValueError("a bug"), *(StoreUnavailable() for _ in range(8))]
    work = Work(errors={"a": list(errors)})
    worker = worker_of(work, pause=pause)
    worker.wake("a")
    worker.wake("b")
    await worker.settled("a", seconds=LONG)
    assert sorted(work.done) == ["a", "b"]
    assert work.reported == [("a", error) for error in errors]
    assert pauses == list(range(1, 11))


async def test_a_key_that_rests_is_tried_at_once_for_whoever_waits_and_for_nobody_else() -> None:
    work = Work(errors={"a": [StoreUnavailable()]})
    worker = worker_of(work, pause=lambda tries: 3600.0)
    await worker.hurry("a", seconds=LONG)
    assert worker.is_busy("a")
    worker.wake("a")
    await asyncio.sleep(0.01)
    assert work.begun == ["a"]
    await worker.hurry("a", seconds=LONG)
    assert work.done == ["a"]
    assert len(work.begun) == 2


async def test_it_is_given_up_after_five_failures_that_no_outage_excuses() -> None:
    given_up = list[tuple[str, str]]()
    cannot: list[Exception] = [StoreUnavailable()]

    async def give_up(key: str, error: Exception) -> None:
        if cannot:
            raise cannot.pop()
        given_up.append((key, str(error)))

    errors = [ValueError("1"), StoreUnavailable(), *(ValueError(str(number)) for number in range(2, 9))]
    work = Work(errors={"a": list(errors)})
    worker = KeyedWorker("test", work, at_once=1, failed=work.report, give_up=give_up, pause=lambda tries: 0.0)
    worker.wake("a")
    await worker.settled("a", seconds=LONG)
    # At the fifth failure it could not be given up: that is a failed try too, and the next one gives it up.
    assert given_up == [("a", "6")]
    assert len(work.begun) == 7
    assert len(work.reported) == 8
    assert work.done == []


async def test_closed_it_ends_and_takes_nothing_more() -> None:
    work = Work(gates={"slow": asyncio.Event()}, errors={"rests": [StoreUnavailable()]})
    worker = worker_of(work, at_once=1, pause=lambda tries: 3600.0)
    worker.wake("rests")
    await eventually(lambda: bool(work.reported))
    worker.wake("slow")
    await eventually(lambda: "slow" in work.begun)
    worker.wake("waits")
    waiting = asyncio.create_task(worker.hurry("slow", seconds=LONG))
    await asyncio.sleep(0)
    worker.wake("never begun")
    await worker.close()
    await waiting
    work.gates["slow"].set()
    worker.wake("late")
    await worker.hurry("late", seconds=LONG)
    await worker.settled("late", seconds=LONG)
    assert work.begun == ["rests", "slow"]
    assert work.done == []
    assert not any(map(worker.is_busy, ("rests", "slow", "waits", "never begun", "late")))
