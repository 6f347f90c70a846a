"""What the tests of people's verbs stand on: a user's turns, learned by script, over real stores."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.bounds import Bounds
from memory.decision import Proposal
from memory.doctor import examine
from memory.documents import Documents, FactFilter
from memory.extractor import Extraction, ExtractionRequest
from memory.fact import Fact
from memory.fact_book import FactBook
from memory.indexing import IndexStep
from memory.mem_config import MemoryConfig
from memory.reconciliation import Review
from memory.scope import Scope
from memory.turn import Message, Turn
from memory.turn_book import TurnBook
from memory.update import Update, owed
from memory.updater import Updater
from tests.contracts.documents.samples import answer
from tests.domain.learner import ScriptedExtractor, Stores, facts_step, stores
from tests.domain.updating import JumpingClock


def says(key: str, value: str, **more: Any) -> Proposal:
    """A proposal to add a fact, whose evidence is its value."""
    return Proposal("add", key, value, f"The user's {key} is {value}.", value, **more)


@dataclass
class ByMessage(ScriptedExtractor):
    """Answers each message with its own proposals."""

    lessons: dict[str, Sequence[Proposal]] = field(default_factory=dict[str, Sequence[Proposal]])

    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        self.requests.append(request)
        message = request.turns[-1].message
        return Extraction(tuple(self.lessons.get(message, ())), model or "scripted")


@dataclass
class House:
    """A user with open stores, the verbs of a person, and turns that teach what they are told to."""

    stores: Stores
    updater: Updater
    facts: FactBook
    turns: TurnBook
    extractor: ByMessage
    clock: JumpingClock
    user: str = "ada"

    @property
    def documents(self) -> Documents:
        return self.stores.documents

    async def turn(
        self, turn_id: str, *proposals: Proposal, thread: str = "t1", result: Mapping[str, Any] | None = None
    ) -> Turn:
        """A committed turn that has taught these; each is quoted in its message."""
        said = f"Turn {turn_id}: " + ", ".join(proposal.evidence for proposal in proposals) + "."
        self.extractor.lessons[said] = proposals
        conversations = self.documents.conversations
        message = await conversations.accept(Message(self.user, thread, turn_id, "user", said, self.clock()))
        recalled = result or {"model": "m", "memory": {"facts": {}, "hits": []}}
        assert await conversations.commit(answer(message), result=recalled, update=owed())
        self.updater.notify(self.user)
        await self.updater.wait_ended(user_id=self.user, turn_id=turn_id, seconds=10)
        self.clock.jump()
        return await self.stored(turn_id)

    async def stored(self, turn_id: str) -> Turn:
        turn = await self.documents.conversations.turn(user_id=self.user, turn_id=turn_id)
        assert turn is not None
        return turn

    async def update(self, turn_id: str) -> Update:
        update = (await self.stored(turn_id)).update
        assert update is not None
        return update

    async def known(self, *, at: datetime | None = None, thread: str | None = None) -> dict[str, str]:
        """The dict of what holds now, or at that time."""
        shown = FactFilter(self.clock(), thread_id=thread, as_of=at)
        return dict((await self.facts.page(self.user, shown, limit=200)).facts)

    async def living(self, *, thread: str = "t1") -> list[Fact]:
        now = self.clock()
        found = await self.documents.facts.living(Scope(self.user, thread), at=now, limit=500)
        return [fact for fact in reversed(found) if fact.is_living(now)]

    async def one(self, key: str) -> Fact:
        """The one living fact under a key."""
        (found,) = [fact for fact in await self.living() if fact.key == key]
        return found

    async def check_index(self) -> None:
        """Documents and index are equal, and no key lives twice."""
        await self.stores.points.sync(self.user)
        report = await examine(self.documents, self.stores.index, self.stores.embedder, now=self.clock())
        assert report.healthy, report
        assert report.totals.pending == 0
        places = [(fact.key, fact.scope, fact.thread_id) for fact in await self.living() if fact.key is not None]
        assert len(places) == len(set(places)), places


@asynccontextmanager
async def house(folder: Path, *, documents: Any = None, review: Review | None = None) -> AsyncGenerator[House]:
    """Everything open; `documents` makes what the verbs and the facts step use in place of the stores' own."""
    clock = JumpingClock()
    async with stores(folder) as opened:
        used: Documents = opened.documents if documents is None else documents(opened.documents)
        extractor = ByMessage()
        step = facts_step(opened, extractor, clock=clock, documents=used, review=review)
        index = IndexStep(opened.index, opened.embedder, opened.documents.timeline)
        updater = Updater(
            opened.documents, {"facts": step, "index": index}, clock=clock, concurrency=4, sweep_seconds=3600
        )
        updater.start()
        bounds = Bounds(opened.documents, opened.index, MemoryConfig(), clock)
        try:
            yield House(
                opened,
                updater,
                FactBook(used, opened.points, updater, clock, 5, bounds),
                TurnBook(used, opened.points, updater, step, clock, 5),
                extractor,
                clock,
            )
        finally:
            await updater.drain(0)
