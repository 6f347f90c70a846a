"""Taking back what a turn taught, and learning from it again, over real stores."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.learning.reconciliation import Review
from recollect.memory.learning.undoing import undo_turn
from recollect.memory.ports.extractor import Extraction, ExtractionRequest
from recollect.memory.ports.facts import FactFilter
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import FactsChanged, NotFound, UpdatePending
from recollect.memory.values.turn import Message
from recollect.memory.values.update import Undo, Update
from tests.domain.support.handling import House, house, says
from tests.domain.support.learner import Dying, Killed

BERGEN = Proposal("update", "city", "Bergen", "The user lives in Bergen.", "Bergen")
AT = datetime(2026, 11, 21, tzinfo=UTC)
GONE = Proposal("delete", key="pet", evidence="Forget the dog")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path) as opened:
        yield opened


def shown(changes: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {(change["decision"], change["key"], change["before"], change["after"]) for change in changes}


async def three_kinds(home: House) -> None:
    """Store two turns: the second adds, updates, deletes and confirms."""
    await home.turn("a", says("city", "Oslo"), says("pet", "dog"), says("name", "Ada"))
    await home.turn("b", says("job", "nurse"), BERGEN, GONE, Proposal("keep", key="name", evidence="Ada"))
    assert await home.known() == {"city": "Bergen", "name": "Ada", "job": "nurse"}


BACK = {("delete", "job", "nurse", None), ("update", "city", "Bergen", "Oslo"), ("add", "pet", None, "dog")}


async def test_all_that_a_turn_taught_is_taken_back(home: House) -> None:
    await three_kinds(home)
    before = {fact.key: (fact.id, fact.valid_to) for fact in await home.living()}
    undone = await home.turns.undo("ada", "b")
    assert (undone["turn_id"], undone["left"], shown(undone["undone"])) == ("b", [], BACK)
    assert await home.known() == {"city": "Oslo", "pet": "dog", "name": "Ada"}
    restored = await home.one("city")
    assert (restored.valid_to, restored.ended) == (None, None)
    update = (await home.update("b")).as_json()
    assert len(update["changes"]) == 4, "what it taught is still told"
    assert update["status"] == "done"
    assert update["undone"]["left"] == []
    by = {
        (version["value"], version["status"]): version["ended"]["by"]
        for version in await home.facts.history("ada", restored.id)
        if version["ended"]
    }
    assert by == {("Oslo", "ended"): "undo", ("Bergen", "undone"): "undo"}
    await home.check_index()
    again = await home.turns.undo("ada", "b")
    assert again == undone
    assert await home.turns.undo("ada", "b", force=True) == undone
    assert before["name"][0] == (await home.one("name")).id


async def test_a_turn_that_taught_nothing_has_nothing_to_undo(home: House) -> None:
    await home.turn("a")
    assert await home.turns.undo("ada", "a") == {"turn_id": "a", "undone": [], "left": []}
    assert "undone" not in (await home.update("a")).as_json()


async def test_an_end_that_was_to_come_is_restored(home: House) -> None:
    made = await home.turn("a", says("city", "Oslo"))
    fact = await home.one("city")
    until = home.clock() + timedelta(days=300)
    assert await home.store.facts.replace(fact.revised(at=home.clock(), valid_to=until), revision=fact.revision), made
    await home.turn("b", BERGEN)
    await home.turns.undo("ada", "b")
    assert (await home.one("city")).valid_to == until


async def test_undoing_turn_after_turn_goes_back_step_by_step(home: House) -> None:
    await home.turn("a", says("city", "Oslo"))
    await home.turn("b", BERGEN)
    await home.turn("c", Proposal("update", "city", "Rome", "The user lives in Rome.", "Rome"))
    with pytest.raises(FactsChanged) as raised:
        await home.turns.undo("ada", "b")
    (detail,) = raised.value.details
    assert (detail["key"], set(detail)) == ("city", {"fact_id", "key", "reason"})
    assert await home.known() == {"city": "Rome"}
    for turn_id, left in (("c", {"city": "Bergen"}), ("b", {"city": "Oslo"}), ("a", {})):
        await home.turns.undo("ada", turn_id)
        assert await home.known() == left
        await home.check_index()


CHANGES = ("patched", "pinned", "superseded", "forgotten", "confirmed", "taken")


@pytest.mark.parametrize("what", CHANGES)
async def test_what_has_changed_since_is_named_and_left(home: House, what: str) -> None:
    await three_kinds(home)
    city = await home.one("city")
    if what == "patched":
        await home.facts.patch("ada", city.id, {"value": "Tromso"})
    elif what == "pinned":
        await home.facts.patch("ada", city.id, {"pinned": True})
    elif what == "superseded":
        await home.turn("c", Proposal("update", "city", "Rome", "The user lives in Rome.", "Rome"))
    elif what == "forgotten":
        await home.facts.forget("ada", city.id)
    elif what == "confirmed":
        await home.turn("c", Proposal("keep", key="city", evidence="Bergen"))
    else:
        await home.facts.put("ada", "pet", {"value": "cat"})
    known = await home.known()
    if what == "confirmed":
        assert shown((await home.turns.undo("ada", "b"))["undone"]) == BACK
        return
    with pytest.raises(FactsChanged) as raised:
        await home.turns.undo("ada", "b")
    assert len(raised.value.details) == 1
    assert await home.known() == known, "nothing was done"
    assert "undone" not in (await home.update("b")).as_json()
    forced = await home.turns.undo("ada", "b", force=True)
    assert forced["left"] == raised.value.details
    key = "pet" if what == "taken" else "city"
    assert shown(forced["undone"]) == {change for change in BACK if change[1] != key}
    rest = {"name": "Ada", "pet": "dog", "city": "Oslo"} | {key: known[key] for key in {key} & known.keys()}
    assert await home.known() == {one: value for one, value in rest.items() if one in known or one != key}
    await home.check_index()
    assert await home.turns.undo("ada", "b") == forced


async def test_proposed_and_approved_facts_are_undone_too(tmp_path: Path) -> None:
    async with house(tmp_path, review=Review("all")) as home:
        await home.facts.put("ada", "city", {"value": "Oslo"})
        await home.turn("a", says("name", "Ada"), says("dog", "Rex"), says("job", "nurse"))
        found = (await home.facts.page("ada", FactFilter(home.clock(), status="proposed"), limit=9)).items
        by_key = {fact.key: fact for fact in found}
        await home.facts.put("ada", "name", {"value": "Bob"})
        await home.facts.approve("ada", by_key["name"].id)
        await home.facts.reject("ada", by_key["dog"].id)
        assert await home.known() == {"city": "Oslo", "name": "Ada"}
        undone = await home.turns.undo("ada", "a")
        assert shown(undone["undone"]) == {("update", "name", "Ada", "Bob"), ("delete", "job", "nurse", None)}
        assert await home.known() == {"city": "Oslo", "name": "Bob"}
        assert (await home.facts.fact("ada", by_key["job"].id)).status == "undone"
        assert (await home.facts.fact("ada", by_key["dog"].id)).status == "rejected"
        await home.check_index()


async def undone_by(home: House, facts: Any) -> Update:
    """Turn b undone by its step over these facts, but for the recording."""
    turn = await home.stored("b")
    assert turn.update is not None
    return await undo_turn(facts, turn, replace(turn.update, undo=Undo(at=AT, force=False)), now=home.clock())


async def test_a_kill_at_any_write_of_an_undo_is_made_good(tmp_path: Path) -> None:
    async with house(tmp_path / "whole") as home:
        await three_kinds(home)
        counting = Dying(home.store.facts, 1_000)
        whole = await undone_by(home, counting)
        writes = 1_000 - counting.left
        assert writes == 5
    for cut in range(writes):
        async with house(tmp_path / str(cut)) as home:
            await three_kinds(home)
            with pytest.raises(Killed):
                await undone_by(home, Dying(home.store.facts, cut))
            for _ in range(2):
                update = await undone_by(home, home.store.facts)
                assert update.undo is not None
                assert whole.undo is not None
                assert told(update.undo) == told(whole.undo)
                assert await home.known() == {"city": "Oslo", "pet": "dog", "name": "Ada"}
            await home.check_index()


def told(wish: Undo) -> list[tuple[Any, ...]]:
    return [(change.decision, change.key, change.before, change.after) for change in wish.changes]


async def test_what_changes_between_the_wish_and_its_doing_stops_it(home: House) -> None:
    await three_kinds(home)
    turn = await home.stored("b")
    assert turn.update is not None
    await home.facts.patch("ada", (await home.one("job")).id, {"value": "doctor"})
    step = home.turns.learning

    async def save(_: object) -> None:
        """Nothing is planned."""

    wished = replace(turn.update, undo=Undo(at=home.clock()))
    stopped = await step.run(turn, wished, save)
    assert stopped.undo is not None
    assert (stopped.undo.done, stopped.undo.is_done, stopped.undo.changes) == (True, False, ())
    assert [left.key for left in stopped.undo.left] == ["job"]
    assert stopped.writes == turn.update.writes
    assert await home.known() == {"city": "Bergen", "name": "Ada", "job": "doctor"}
    assert (await step.run(turn, stopped, save)).undo == stopped.undo


async def test_learning_again_brings_back_what_was_undone_and_leaves_what_came_later(home: House) -> None:
    await home.turn("a", says("city", "Oslo"), says("name", "Ada"), says("job", "nurse"))
    await home.turn("b", BERGEN)
    await home.facts.forget("ada", (await home.one("job")).id)
    rehearsed = await home.turns.preview_learning("ada", "a", model="other")
    assert (rehearsed["model"], rehearsed["dry_run"]) == ("other", True)
    assert {change["decision"] for change in rehearsed["changes"]} <= {"keep"}
    learned = await home.turns.learn("ada", "a", model="other")
    assert (learned["update"]["status"], learned["update"]["model"]) == ("done", "other")
    assert await home.known() == {"city": "Bergen", "name": "Ada"}
    assert [fact.key for fact in await home.living()].count("city") == 1
    await home.turns.undo("ada", "a", force=True)
    assert await home.known() == {"city": "Bergen"}
    again = await home.turns.learn("ada", "a")
    assert "undone" not in again["update"]
    assert await home.known() == {"city": "Bergen", "name": "Ada"}
    undone = await home.turns.undo("ada", "a", force=True)
    assert ("delete", "name", "Ada", None) in shown(undone["undone"])
    assert await home.known() == {"city": "Bergen"}
    await home.check_index()


async def test_a_dry_run_changes_no_fact(home: House) -> None:
    turn = await home.turn("a", says("city", "Oslo"))
    home.extractor.lessons[turn.message.content] = (says("city", "Oslo"), Proposal("add", "turn", "a", None, "Turn a"))
    rehearsed = await home.turns.preview_learning("ada", "a")
    assert shown(rehearsed["changes"]) >= {("add", "turn", None, "a")}
    stored = await home.stored("a")
    assert stored.update is not None
    assert replace(stored, update=replace(stored.update, preview=None)) == turn, "the preview alone is kept"
    assert await home.known() == {"city": "Oslo"}


async def test_unknown_unfinished_and_pending_turns_are_refused(home: House) -> None:
    await home.turn("a", says("city", "Oslo"))
    for verb in (home.turns.undo, home.turns.learn, home.turns.preview_learning):
        for user, turn_id in (("bob", "a"), ("ada", "never")):
            with pytest.raises(NotFound):
                await verb(user, turn_id)
    message = Message("ada", "t1", "open", "user", "Hello.", home.clock())
    await home.store.conversations.accept(message)
    for verb in (home.turns.undo, home.turns.learn, home.turns.preview_learning):
        with pytest.raises(UpdatePending):
            await verb("ada", "open")


async def test_an_undo_waits_for_the_learning(home: House) -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    async def slow(request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        started.set()
        await gate.wait()
        return Extraction((says("city", "Oslo"),), "slow")

    home.extractor.extract = slow  # pyright: ignore[reportAttributeAccessIssue] - an instance's own way to answer
    teaching = asyncio.create_task(home.turn("a", says("city", "Oslo")))
    async with asyncio.timeout(10):
        await started.wait()
    undoing = asyncio.create_task(home.turns.undo("ada", "a"))
    gate.set()
    await teaching
    assert shown((await undoing)["undone"]) == {("delete", "city", "Oslo", None)}
    assert await home.known() == {}


async def test_a_confirmation_is_taken_back(home: House) -> None:
    await home.turn("a", says("name", "Ada"))
    before = await home.one("name")
    home.clock.jump()
    await home.turn("b", Proposal("keep", key="name", evidence="Ada"))
    assert (await home.one("name")).confirmed_at > before.confirmed_at
    assert (await home.turns.undo("ada", "b"))["left"] == []
    after = await home.one("name")
    assert (after.id, after.confirmed_at, after.updated_at) == (before.id, before.confirmed_at, before.updated_at)
    await home.check_index()


async def test_what_was_confirmed_since_stays_so(home: House) -> None:
    await home.turn("a", says("name", "Ada"))
    home.clock.jump()
    await home.turn("b", Proposal("keep", key="name", evidence="Ada"))
    home.clock.jump()
    await home.turn("c", Proposal("keep", key="name", evidence="Ada"))
    confirmed = (await home.one("name")).confirmed_at
    await home.turns.undo("ada", "b")
    assert (await home.one("name")).confirmed_at == confirmed
