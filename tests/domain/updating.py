"""What the updater's tests stand on: a clock that jumps, and step works that do as they are told."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory.documents import Documents
from memory.times import utc_now
from memory.turn import Turn
from memory.update import StepName, Update
from memory.updater import Updater
from memory.user_work import Resting, Save, StepWork

HOUR = timedelta(hours=1)


@dataclass
class JumpingClock:
    """The time of day, and what was skipped; `asked` counts how often it was asked."""

    skipped: timedelta = timedelta()
    asked: int = 0

    def __call__(self) -> datetime:
        self.asked += 1
        return utc_now() + self.skipped

    def jump(self, by: timedelta = timedelta(minutes=1)) -> None:
        self.skipped += by


@dataclass
class Scripted:
    """Does the steps of `turns` in the order that it was asked, raising what `errors` holds for a turn first."""

    errors: Mapping[str, deque[Exception]] = field(default_factory=lambda: defaultdict[str, deque[Exception]](deque))
    started: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    at_once: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    most_at_once: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    learn: Callable[[Update], Update] = lambda update: update
    rests: Callable[[list[str]], Resting] = lambda turns: {}
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

    async def resting(self, turns: Sequence[tuple[Turn, Update]]) -> Resting:
        return self.rests([turn.message.turn_id for turn, _ in turns])

    async def take_back(self, turn: Turn) -> None:
        self.taken_back.append(turn.message.turn_id)


@asynccontextmanager
async def updater(
    documents: Documents,
    *,
    clock: Callable[[], datetime] = utc_now,
    sweep_seconds: float = 3600,
    concurrency: int = 8,
    facts: StepWork | None = None,
    index: StepWork | None = None,
) -> AsyncGenerator[Updater]:
    """A started updater, drained at the end."""
    steps: dict[StepName, StepWork] = {"facts": facts or Scripted(), "index": index or Scripted()}
    made = Updater(documents, steps, clock=clock, concurrency=concurrency, sweep_seconds=sweep_seconds)
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


async def update_of(documents: Documents, turn_id: str, *, user_id: str = "ada") -> Update:
    """The turn's update as it is stored."""
    turn = await documents.conversations.turn(user_id=user_id, turn_id=turn_id)
    assert turn is not None
    assert turn.update is not None
    return turn.update
