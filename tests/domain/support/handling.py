"""The base of the tests of people's verbs: a user's turns, learned by script, over real stores."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from typing_extensions import override

from recollect.memory.erasure.fences import Fences
from recollect.memory.facts.fact_service import FactService
from recollect.memory.index.doctor import examine
from recollect.memory.index.indexing import IndexStep
from recollect.memory.learning.reconciliation import Review
from recollect.memory.learning.turns.explaining import Explaining
from recollect.memory.learning.turns.turn_service import TurnService
from recollect.memory.ports.extractor import Extraction, ExtractionRequest
from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.store import Store
from recollect.memory.updates.retention import Retention
from recollect.memory.updates.updater import Updater
from recollect.memory.values.decision import Proposal
from recollect.memory.values.fact import Fact
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update, owed
from tests.contracts.store.samples import answer
from tests.domain.support.learner import ScriptedExtractor, Stores, facts_step, stores
from tests.domain.support.updating import JumpingClock


def says(key: str, value: str, **more: Any) -> Proposal:
    """Return a proposal to add a fact, whose evidence is its value."""
    return Proposal("add", key, value, f"The user's {key} is {value}.", value, **more)


@dataclass
class ByMessage(ScriptedExtractor):
    """Answers each message with its own proposals."""

    lessons: dict[str, Sequence[Proposal]] = field(default_factory=dict[str, Sequence[Proposal]])

    @override
    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        self.requests.append(request)
        message = request.turns[-1].message
        return Extraction(tuple(self.lessons.get(message, ())), model or "scripted")


@dataclass
class House:
    """A user with open stores, the verbs of a person, and turns that teach given proposals."""

    stores: Stores
    updater: Updater
    facts: FactService
    turns: TurnService
    extractor: ByMessage
    clock: JumpingClock
    user: str = "ada"

    @property
    def store(self) -> Store:
        return self.stores.store

    async def turn(
        self, turn_id: str, *proposals: Proposal, thread: str = "t1", result: Mapping[str, Any] | None = None
    ) -> Turn:
        """Commit a turn and learn these proposals from it; each is quoted in its message."""
        said = f"Turn {turn_id}: " + ", ".join(proposal.evidence for proposal in proposals) + "."
        self.extractor.lessons[said] = proposals
        conversations = self.store.conversations
        message = await conversations.accept(Message(self.user, thread, turn_id, "user", said, self.clock()))
        recalled = result or {"model": "m", "memory": {"facts": {}, "hits": []}}
        assert await conversations.commit(answer(message), result=recalled, update=owed())
        self.updater.notify(self.user)
        await self.updater.wait_ended(user_id=self.user, turn_id=turn_id, seconds=10)
        self.clock.jump()
        return await self.stored(turn_id)

    async def stored(self, turn_id: str) -> Turn:
        turn = await self.store.conversations.turn(user_id=self.user, turn_id=turn_id)
        assert turn is not None
        return turn

    async def update(self, turn_id: str) -> Update:
        update = (await self.stored(turn_id)).update
        assert update is not None
        return update

    async def known(self, *, at: datetime | None = None, thread: str | None = None) -> dict[str, str]:
        """Return the dict of the facts that hold now, or at that time."""
        shown = FactFilter(self.clock(), thread_id=thread, as_of=at)
        return dict((await self.facts.page(self.user, shown, limit=200)).facts)

    async def living(self, *, thread: str = "t1") -> list[Fact]:
        now = self.clock()
        found = await self.store.facts.living(Scope(self.user, thread), at=now, limit=500)
        return [fact for fact in reversed(found) if fact.is_living(now)]

    async def one(self, key: str) -> Fact:
        """Return the one living fact under a key."""
        (found,) = [fact for fact in await self.living() if fact.key == key]
        return found

    async def check_index(self) -> None:
        """Check that store and index are equal, and that no key has two living facts."""
        await self.stores.points.sync(self.user)
        report = await examine(self.store, self.stores.index, self.stores.embedder, now=self.clock())
        assert report.healthy, report
        assert report.totals.pending == 0
        places = [(fact.key, fact.scope, fact.thread_id) for fact in await self.living() if fact.key is not None]
        assert len(places) == len(set(places)), places


@asynccontextmanager
async def house(folder: Path, *, documents: Any = None, review: Review | None = None) -> AsyncGenerator[House]:
    """Open everything; `documents` makes the store that the verbs and the facts step use in place of the real one."""
    clock = JumpingClock()
    async with stores(folder) as opened:
        used: Store = opened.store if documents is None else documents(opened.store)
        extractor = ByMessage()
        step = facts_step(opened, extractor, clock=clock, store=used, review=review)
        index = IndexStep(opened.index, opened.embedder, opened.store.timeline)
        updater = Updater(opened.store, {"facts": step, "index": index}, clock=clock, concurrency=4, sweep_seconds=3600)
        updater.start()
        retention = Retention(opened.store, opened.index, MemoryConfig(), clock)
        try:
            yield House(
                opened,
                updater,
                FactService(used, clock, opened.points, updater, 5, retention, Fences(opened.store.erasures)),
                TurnService(used, opened.points, updater, step, clock, 5, Explaining(used, 1_500)),
                extractor,
                clock,
            )
        finally:
            await updater.drain(0)
