"""The facts step over a real store: what was planned is done once, wherever it was cut off."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pytest

from memory.decision import Proposal
from memory.documents import Documents, Facts
from memory.errors import ModelUnavailable, UnreadableAnswer
from memory.extractor import Extraction, ExtractionRequest
from memory.fact import Fact
from memory.learning import FactsStep
from memory.scope import Scope
from memory.stores.sqlite import open_sqlite_documents
from memory.turn import Turn
from memory.update import Update, owed
from tests.contracts.documents.samples import NOW, answer, asked, fact
from tests.domain.updating import Scripted, update_of, updater

SAID = "I moved to Paris, my name is still Ada, and I play chess."
MOVED = Proposal("update", "location", "Paris", "The user lives in Paris.", "I moved to Paris")
STILL = Proposal("keep", key="name", value="Ada", evidence="my name is still Ada")
CHESS = Proposal("add", "hobby", "chess", "The user plays chess.", "I play chess")
INVENTED = Proposal("add", "pet", "dog", "The user has a dog.", "I have a dog")
TOLD = Proposal("add", "game", "chess", "The user plays chess.", "I play chess", source="tool")


class Killed(BaseException):
    """What a kill -9 looks like to the code that it cuts off."""


@dataclass
class ScriptedExtractor:
    """Answers the proposals, or raises the errors first."""

    proposals: tuple[Proposal, ...] = (MOVED, STILL, CHESS, INVENTED)
    errors: list[Exception] = field(default_factory=list[Exception])
    requests: list[ExtractionRequest] = field(default_factory=list[ExtractionRequest])

    async def extract(self, request: ExtractionRequest) -> Extraction:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        return Extraction(self.proposals, "scripted")


@dataclass
class DyingFacts:
    """The facts of a store, whose process is killed before the write after so many."""

    facts: Facts
    left: int

    def _write(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    async def insert(self, fact: Fact) -> bool:
        self._write()
        return await self.facts.insert(fact)

    async def end(self, fact: Fact, *, at: datetime) -> bool:
        self._write()
        return await self.facts.end(fact, at=at)

    async def confirm(self, fact: Fact, *, at: datetime) -> bool:
        self._write()
        return await self.facts.confirm(fact, at=at)

    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        return await self.facts.fact(user_id=user_id, fact_id=fact_id)

    async def living(self, scope: Scope, *, limit: int) -> list[Fact]:
        return await self.facts.living(scope, limit=limit)

    async def page(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Fact]:
        return await self.facts.page(scope, limit=limit, after=after)

    async def delete(self, scope: Scope) -> int:
        self._write()
        return await self.facts.delete(scope)


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncGenerator[Documents]:
    async with open_sqlite_documents(tmp_path / "recollect.db") as opened:
        yield opened


async def begin(documents: Documents, *proposals: Proposal) -> Turn:
    """What is known, and a committed turn that is to be learned from."""
    for known in (
        fact("name1", age=20),
        fact("home1", age=10, key="location", value="Berlin", statement="The user lives in Berlin."),
    ):
        assert await documents.facts.insert(known)
    message = await documents.conversations.accept(asked(content=SAID))
    update = owed(proposals=proposals)
    assert await documents.conversations.commit(answer(message), result={"model": "m"}, update=update)
    turn = await documents.conversations.turn(user_id="ada", turn_id="turn1")
    assert turn is not None
    return turn


async def learn(documents: Documents, extractor: ScriptedExtractor, facts: Facts | None = None) -> Update:
    """Run the step for the turn as it is stored, recording as the updater does."""
    turn = await documents.conversations.turn(user_id="ada", turn_id="turn1")
    assert turn is not None
    assert turn.update is not None

    async def save(update: Update) -> None:
        assert await documents.updates.record(turn, update, generation=1)

    step = FactsStep(facts or documents.facts, extractor, lambda: NOW)
    update = await step.run(turn, turn.update, save)
    await save(update)
    return update


async def stored(documents: Documents) -> list[Fact]:
    """All living facts, and those that were known before."""
    living = await documents.facts.page(Scope("ada", "t1"), limit=50)
    before = [await documents.facts.fact(user_id="ada", fact_id=name) for name in ("name1", "home1")]
    return [*living, *(one for one in before if one is not None and one.valid_to is not None)]


async def test_a_turn_teaches_what_its_quotes_prove(documents: Documents) -> None:
    await begin(documents)
    extractor = ScriptedExtractor()
    update = await learn(documents, extractor)
    (request,) = extractor.requests
    assert (request.message, request.reply, request.now) == (SAID, "Hi!", NOW)
    assert [one.id for one in request.known] == ["home1", "name1"], "newest first"
    changes = {change.key: (change.decision, change.before, change.after) for change in update.changes}
    assert changes == {
        "location": ("update", "Berlin", "Paris"),
        "name": ("keep", "Ada", "Ada"),
        "hobby": ("add", None, "chess"),
    }
    assert [(refused.key, refused.value) for refused in update.refused] == [("pet", "dog")]
    assert (update.model, update.planned) == ("scripted", True)
    living = {one.key: one for one in await documents.facts.page(Scope("ada"), limit=9)}
    assert {key: one.value for key, one in living.items()} == {"name": "Ada", "location": "Paris", "hobby": "chess"}
    assert living["location"].replaces == "home1"
    assert (living["location"].evidence, living["location"].turn_id) == ("I moved to Paris", "turn1")
    assert living["name"].confirmed_at == NOW
    old = await documents.facts.fact(user_id="ada", fact_id="home1")
    assert old is not None
    assert old.valid_to == NOW


@pytest.mark.parametrize("told", [(), (TOLD,)], ids=["extraction", "extraction and tool"])
async def test_a_kill_at_any_write_is_made_good_without_asking_again(
    tmp_path: Path, documents: Documents, told: tuple[Proposal, ...]
) -> None:
    await begin(documents, *told)
    undisturbed = DyingFacts(documents.facts, 1_000)
    whole = await learn(documents, ScriptedExtractor(), undisturbed)
    expected = await stored(documents)
    writes = 1_000 - undisturbed.left
    assert writes >= 4
    for cut in range(writes):
        async with open_sqlite_documents(tmp_path / f"cut{cut}.db") as again:
            await begin(again, *told)
            extractor = ScriptedExtractor()
            with pytest.raises(Killed):
                await learn(again, extractor, DyingFacts(again.facts, cut))
            assert await learn(again, extractor) == whole
            assert await stored(again) == expected
            assert len(extractor.requests) == 1
            assert await learn(again, extractor) == whole, "and once more"
            assert await stored(again) == expected
            assert len(extractor.requests) == 1


async def test_a_kill_before_the_plan_asks_again(documents: Documents) -> None:
    turn = await begin(documents)
    assert turn.update is not None
    extractor = ScriptedExtractor()

    async def killed(_: Update) -> None:
        raise Killed

    with pytest.raises(Killed):
        await FactsStep(documents.facts, extractor, lambda: NOW).run(turn, turn.update, killed)
    assert len(await stored(documents)) == 2, "nothing was written before the plan was recorded"
    await learn(documents, extractor)
    assert len(extractor.requests) == 2
    assert len(await stored(documents)) == 4


async def test_the_agents_proposals_are_written_whatever_the_extraction_says(documents: Documents) -> None:
    await begin(documents, TOLD, replace(INVENTED, source="tool"))
    extractor = ScriptedExtractor(errors=[UnreadableAnswer(), ModelUnavailable()])
    for error in (UnreadableAnswer, ModelUnavailable):
        with pytest.raises(error):
            await learn(documents, extractor)
        living = {one.key: one for one in await documents.facts.page(Scope("ada"), limit=9)}
        assert living["game"].source == "tool"
    update = await learn(documents, extractor)
    assert [(change.decision, change.after) for change in update.changes if change.key == "game"] == [("add", "chess")]
    assert "pet" in {refused.key for refused in update.refused}


async def test_no_decisions_are_done_without_changes(documents: Documents) -> None:
    await begin(documents)
    before = await stored(documents)
    async with updater(
        documents, facts=FactsStep(documents.facts, ScriptedExtractor(()), lambda: NOW), index=Scripted()
    ) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert (ended.status, ended.changes, ended.refused) == ("done", (), ())
    assert await stored(documents) == before


async def test_the_updater_replays_a_recorded_plan(documents: Documents) -> None:
    await begin(documents)
    extractor = ScriptedExtractor()
    with pytest.raises(Killed):
        await learn(documents, extractor, DyingFacts(documents.facts, 1))
    planned = await update_of(documents, "turn1")
    assert (planned.status, planned.planned, len(planned.changes)) == ("pending", True, 3)
    async with updater(documents, facts=FactsStep(documents.facts, extractor, lambda: NOW)) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert (ended.status, ended.changes) == ("done", planned.changes)
    assert len(extractor.requests) == 1
    assert {one.value for one in await documents.facts.page(Scope("ada"), limit=9)} == {"Ada", "Paris", "chess"}
