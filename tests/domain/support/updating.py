"""The base of the updater's tests: a clock that jumps, and scripted work for each step."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recollect.memory.ports.store import Store
from recollect.memory.updates.step_work import Deferred, Save, StepWork
from recollect.memory.updates.updater import Updater
from recollect.memory.values.times import utc_now
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import StepName, Update

HOUR = timedelta(hours=1)


@dataclass
class JumpingClock:
    """The time of day plus the skipped time; `asked` counts its readings."""

    skipped: timedelta = timedelta()
    asked: int = 0

    def __call__(self) -> datetime:
        self.asked += 1
        return utc_now() + self.skipped

    def jump(self, by: timedelta = timedelta(minutes=1)) -> None:
        self.skipped += by


@dataclass
class Scripted:
    """Does the steps of `turns` and records their order, raising a turn's `errors` first."""

    errors: Mapping[str, deque[Exception]] = field(default_factory=lambda: defaultdict[str, deque[Exception]](deque))
    started: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    at_once: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    most_at_once: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    learn: Callable[[Update], Update] = lambda update: update
    rests: Callable[[list[str]], Deferred] = lambda turns: {}
    taken_back: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.gate.set()

    def fail(self, turn_id: str, *errors: Exception) -> None:
        self.errors[turn_id].extend(errors)

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        user_id, turn_id = turn.message.user_id, turn.message.turn_id
        self.started.append(turn_id)
        self.at_once[user_id] += 1
        self.most_at_once = max(self.most_at_once, self.at_once[user_id])
        try:
            await self.gate.wait()
            if self.errors[turn_id]:
                raise self.errors[turn_id].popleft()
            self.done.append(turn_id)
            return self.learn(update)
        finally:
            self.at_once[user_id] -= 1

    async def deferred(self, turns: Sequence[tuple[Turn, Update]]) -> Deferred:
        return self.rests([turn.message.turn_id for turn, _ in turns])

    async def take_back(self, turn: Turn) -> None:
        self.taken_back.append(turn.message.turn_id)


@asynccontextmanager
async def updater(
    store: Store,
    *,
    clock: Callable[[], datetime] = utc_now,
    sweep_seconds: float = 3600,
    concurrency: int = 8,
    facts: StepWork | None = None,
    index: StepWork | None = None,
) -> AsyncGenerator[Updater]:
    """Run an updater, drained at the end."""
    steps: dict[StepName, StepWork] = {"facts": facts or Scripted(), "index": index or Scripted()}
    made = Updater(store, steps, clock=clock, concurrency=concurrency, sweep_seconds=sweep_seconds)
    made.start()
    try:
        yield made
    finally:
        await made.drain(0)


async def eventually(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any condition, of any task
            await asyncio.sleep(0.005)


async def update_of(store: Store, turn_id: str, *, user_id: str = "ada") -> Update:
    """Return the turn's update as it is stored."""
    turn = await store.conversations.turn(user_id=user_id, turn_id=turn_id)
    assert turn is not None
    assert turn.update is not None
    return turn.update
