"""The facts step over a real store: what was planned is done once, wherever it was cut off."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.memory.ports.extractor import Said
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import ModelUnavailable, UnreadableAnswer
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Update, owed
from tests.contracts.store.samples import NOW, answer, asked, fact
from tests.domain.support.learner import Dying, Killed, ScriptedExtractor, Stores, dying_facts, facts_step, stores
from tests.domain.support.updating import Scripted, update_of, updater

SAID = "I moved to Paris, my name is still Ada, and I play chess."
MOVED = Proposal("update", "location", "Paris", "The user lives in Paris.", "I moved to Paris")
STILL = Proposal("keep", key="name", value="Ada", evidence="my name is still Ada")
CHESS = Proposal("add", "hobby", "chess", "The user plays chess.", "I play chess")
INVENTED = Proposal("add", "pet", "dog", "The user has a dog.", "I have a dog")
ALL = (MOVED, STILL, CHESS, INVENTED)
TOLD = Proposal("add", "game", "chess", "The user plays chess.", "I play chess", source="tool")


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncGenerator[Stores]:
    async with stores(tmp_path / "first") as made:
        yield made


async def begin(opened: Stores, *proposals: Proposal) -> Turn:
    """Return what is known, and a committed turn that is to be learned from."""
    for old in (
        fact("name1", age=20),
        fact("home1", age=10, key="location", value="Berlin", statement="The user lives in Berlin."),
    ):
        assert await opened.store.facts.insert(old)
    message = await opened.store.conversations.accept(asked(content=SAID))
    update = owed(proposals=proposals)
    assert await opened.store.conversations.commit(answer(message), result={"model": "m"}, update=update)
    turn = await opened.store.conversations.turn(user_id="ada", turn_id="turn1")
    assert turn is not None
    return turn


async def learn(opened: Stores, extractor: ScriptedExtractor, dying: Dying | None = None) -> Update:
    """Run the step for the turn as it is stored, recording as the updater does."""
    turn = await opened.store.conversations.turn(user_id="ada", turn_id="turn1")
    assert turn is not None
    assert turn.update is not None

    async def save(update: Update) -> None:
        assert await opened.store.updates.record(turn, update, generation=1)

    documents = dying_facts(opened.store, dying) if dying is not None else None
    update = await facts_step(opened, extractor, clock=lambda: NOW, store=documents).run(turn, turn.update, save)
    await save(update)
    return update


async def known(opened: Stores) -> list[Fact]:
    """Return the living facts of user and thread, oldest first."""
    found = await opened.store.facts.living(Scope("ada", "t1"), at=NOW, limit=50)
    return [fact for fact in reversed(found) if fact.is_living(NOW)]


async def stored(opened: Stores) -> list[Fact]:
    """Return all living facts, and those that were known before; the index follows on its own."""
    before = [await opened.store.facts.fact(user_id="ada", fact_id=name) for name in ("name1", "home1")]
    found = [*await known(opened), *(one for one in before if one is not None and one.ended is not None)]
    return [replace(fact, indexed=False) for fact in found]


async def test_a_turn_teaches_what_its_quotes_prove(opened: Stores) -> None:
    await begin(opened)
    extractor = ScriptedExtractor(ALL)
    update = await learn(opened, extractor)
    (request,) = extractor.requests
    assert ([*request.turns], request.now) == ([Said(SAID, "Hi!", NOW)], NOW)
    assert [one.id for one in request.known] == ["home1", "name1"], "newest first"
    changes = {change.key: (change.decision, change.before, change.after) for change in update.changes}
    assert changes == {
        "location": ("update", "Berlin", "Paris"),
        "name": ("keep", "Ada", "Ada"),
        "hobby": ("add", None, "chess"),
    }
    assert [(refused.key, refused.value) for refused in update.refused] == [("pet", "dog")]
    assert (update.model, update.planned) == ("scripted", True)
    living = {one.key: one for one in await known(opened)}
    assert {key: one.value for key, one in living.items()} == {"name": "Ada", "location": "Paris", "hobby": "chess"}
    assert living["location"].replaces == "home1"
    assert (living["location"].evidence, living["location"].turn_id) == ("I moved to Paris", "turn1")
    assert living["name"].confirmed_at == NOW
    old = await opened.store.facts.fact(user_id="ada", fact_id="home1")
    assert old is not None
    assert old.valid_to == NOW
    assert old.ended == Ended("turn", NOW, "turn1")


@pytest.mark.parametrize("told", [(), (TOLD,)], ids=["extraction", "extraction and tool"])
async def test_a_kill_at_any_write_is_made_good_without_asking_again(
    tmp_path: Path, opened: Stores, told: tuple[Proposal, ...]
) -> None:
    await begin(opened, *told)
    undisturbed = Dying(opened.store.facts, 1_000)
    whole = await learn(opened, ScriptedExtractor(ALL), undisturbed)
    expected = await stored(opened)
    writes = 1_000 - undisturbed.left
    assert writes >= 4
    for cut in range(writes):
        async with stores(tmp_path / f"cut{cut}") as again:
            await begin(again, *told)
            extractor = ScriptedExtractor(ALL)
            with pytest.raises(Killed):
                await learn(again, extractor, Dying(again.store.facts, cut))
            assert await learn(again, extractor) == whole
            assert await stored(again) == expected
            assert len(extractor.requests) == 1
            assert await learn(again, extractor) == whole, "and once more"
            assert await stored(again) == expected
            assert len(extractor.requests) == 1


async def test_a_kill_before_the_plan_asks_again(opened: Stores) -> None:
    turn = await begin(opened)
    assert turn.update is not None
    extractor = ScriptedExtractor(ALL)

    async def killed(_: Update) -> None:
        raise Killed

    with pytest.raises(Killed):
        await facts_step(opened, extractor, clock=lambda: NOW).run(turn, turn.update, killed)
    assert len(await stored(opened)) == 2, "nothing was written before the plan was recorded"
    await learn(opened, extractor)
    assert len(extractor.requests) == 2
    assert len(await stored(opened)) == 4


async def test_the_agents_proposals_are_written_whatever_the_extraction_says(opened: Stores) -> None:
    await begin(opened, TOLD, replace(INVENTED, source="tool"))
    extractor = ScriptedExtractor(ALL, errors=[UnreadableAnswer(), ModelUnavailable()])
    for error in (UnreadableAnswer, ModelUnavailable):
        with pytest.raises(error):
            await learn(opened, extractor)
        living = {one.key: one for one in await known(opened)}
        assert living["game"].source == "tool"
    update = await learn(opened, extractor)
    assert [(change.decision, change.after) for change in update.changes if change.key == "game"] == [("add", "chess")]
    assert "pet" in {refused.key for refused in update.refused}


async def test_no_decisions_are_done_without_changes(opened: Stores) -> None:
    await begin(opened)
    before = await stored(opened)
    async with updater(
        opened.store, facts=facts_step(opened, ScriptedExtractor(()), clock=lambda: NOW), index=Scripted()
    ) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert (ended.status, ended.changes, ended.refused) == ("done", (), ())
    assert await stored(opened) == before


async def test_the_updater_replays_a_recorded_plan(opened: Stores) -> None:
    await begin(opened)
    extractor = ScriptedExtractor(ALL)
    with pytest.raises(Killed):
        await learn(opened, extractor, Dying(opened.store.facts, 1))
    planned = await update_of(opened.store, "turn1")
    assert (planned.status, planned.planned, len(planned.changes)) == ("pending", True, 3)
    async with updater(opened.store, facts=facts_step(opened, extractor, clock=lambda: NOW)) as works:
        ended = await works.wait_ended(user_id="ada", turn_id="turn1", seconds=10)
    assert ended is not None
    assert (ended.status, ended.changes) == ("done", planned.changes)
    assert len(extractor.requests) == 1
    assert {one.value for one in await known(opened)} == {"Ada", "Paris", "chess"}
