"""Checks what a person can do with facts, over real stores."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.ports.facts import FactFilter
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import FactConflict, InvalidRequest, NotFound
from recollect.memory.values.fact_limits import MOST_THREAD_FACTS
from recollect.memory.values.scope import GLOBAL_USER, Scope
from tests.domain.support.handling import House, house, says

DAY = timedelta(days=1)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path) as opened:
        yield opened


async def test_a_put_makes_a_fact_and_then_changes_it_in_place(home: House) -> None:
    made = await home.facts.put("ada", "diet", {"value": " vegetarian ", "tags": ["food"], "importance": 0.9})
    assert (made.value, made.statement, made.source, made.scope) == ("vegetarian", "diet: vegetarian", "manual", "user")
    assert (made.tags, made.importance, made.pinned, made.valid_to) == (("food",), 0.9, False, None)
    home.clock.jump()
    changed = await home.facts.put("ada", "diet", {"value": "vegan", "pinned": True})
    assert (changed.id, changed.value, changed.tags, changed.pinned) == (made.id, "vegan", ("food",), True)
    assert await home.known() == {"diet": "vegan"}
    first, second = await home.facts.history("ada", made.id)
    assert (first["value"], first["ended"]["by"], second["value"], second["ended"]) == (
        "vegetarian",
        "person",
        "vegan",
        None,
    )
    again = await home.facts.put("ada", "diet", {"value": "vegan", "pinned": True})
    assert again.revision == changed.revision, "nothing changed: nothing is written"
    await home.check_index()


async def test_two_puts_of_a_new_key_make_one_fact(home: House) -> None:
    values = [f"value {number}" for number in range(8)]
    made = await asyncio.gather(*(home.facts.put("ada", "diet", {"value": value}) for value in values))
    assert len({fact.id for fact in made}) == 1
    assert (await home.one("diet")).value in values
    versions = await home.facts.history("ada", made[0].id)
    assert {version["value"] for version in versions} == set(values), "none of them got lost"
    await home.check_index()


async def test_a_put_changes_what_a_turn_taught_and_no_turn_changes_it_back(home: House) -> None:
    await home.turn("a", says("city", "Oslo"))
    taught = await home.one("city")
    changed = await home.facts.put("ada", "city", {"value": "Bergen"})
    assert (changed.id, changed.source, changed.turn_id, changed.evidence) == (taught.id, "manual", None, None)
    turn = await home.turn("b", says("city", "Rome"))
    assert turn.update is not None
    assert [refused.value for refused in turn.update.refused] == ["Rome"]
    assert await home.known() == {"city": "Bergen"}


async def test_a_put_against_learning_leaves_one_fact(home: House) -> None:
    for number in range(10):
        await asyncio.gather(
            home.turn(f"turn{number}", says(f"key{number}", "taught")),
            home.facts.put("ada", f"key{number}", {"value": "written"}),
        )
        assert (await home.one(f"key{number}")).value == "written"
    await home.check_index()


async def test_lists_show_what_held_at_a_time_and_persons_corrections_too(home: House) -> None:
    await home.turn("a", says("city", "Oslo"))
    taught = home.clock()
    home.clock.jump(DAY)
    await home.turn("b", Proposal("update", "city", "Bergen", "The user lives in Bergen.", "Bergen"))
    later = home.clock()
    home.clock.jump(DAY)
    await home.facts.put("ada", "city", {"value": "Rome"})
    assert [await home.known(at=at) for at in (taught, later, None)] == [
        {"city": "Oslo"},
        {"city": "Bergen"},
        {"city": "Rome"},
    ]
    page = await home.facts.page("ada", FactFilter(home.clock(), as_of=taught), limit=1)
    assert [fact.value for fact in page.items] == ["Oslo"]
    assert await home.known(at=taught - 2 * DAY) == {}


async def test_a_value_for_later_waits_for_its_time(home: House) -> None:
    first = await home.facts.put("ada", "city", {"value": "Oslo"})
    june = home.clock() + 30 * DAY
    second = await home.facts.put("ada", "city", {"value": "Rome", "valid_from": june})
    assert second.id != first.id
    assert await home.known() == {"city": "Oslo"}
    assert await home.known(at=june) == {"city": "Rome"}
    assert (await home.facts.put("ada", "city", {"value": "Rome", "valid_from": june})).id == second.id


async def test_a_patch_changes_what_it_names(home: House) -> None:
    await home.turn("a", says("city", "Oslo"))
    fact = await home.one("city")
    pinned = await home.facts.patch("ada", fact.id, {"pinned": True, "importance": 1})
    assert (pinned.source, pinned.pinned, pinned.importance, pinned.value) == ("turn", True, 1, "Oslo")
    assert pinned.evidence == "Oslo", "the quote stays with the words that it proves"
    worded = await home.facts.patch("ada", fact.id, {"statement": "Ada lives in Oslo."})
    assert (worded.value, worded.statement, worded.source) == ("Oslo", "Ada lives in Oslo.", "manual")
    valued = await home.facts.patch("ada", fact.id, {"value": "Bergen"})
    assert valued.statement == "city: Bergen"
    assert [version["ended"]["by"] for version in valued.history] == ["person"] * 3
    moved = await home.facts.patch("ada", fact.id, {"scope": "thread", "thread_id": "t1"})
    assert await home.known() == {}
    assert await home.known(thread="t1") == {"city": "Bergen"}
    assert moved.id == fact.id
    over = await home.facts.patch(
        "ada", fact.id, {"valid_to": home.clock() - DAY, "valid_from": home.clock() - 2 * DAY}
    )
    assert not over.is_living(home.clock())
    await home.check_index()


async def test_a_notes_text_is_value_and_statement(home: House) -> None:
    await home.turn("a", Proposal("add", None, None, "The user likes tea.", "likes tea"))
    (fact,) = await home.living()
    changed = await home.facts.patch("ada", fact.id, {"statement": "The user likes coffee."})
    assert (changed.value, changed.statement) == ("The user likes coffee.",) * 2


async def test_a_patch_never_makes_two_of_a_key(home: House) -> None:
    await home.facts.put("ada", "city", {"value": "Oslo"})
    here = await home.facts.put("ada", "city", {"value": "Rome", "scope": "thread", "thread_id": "t1"})
    with pytest.raises(FactConflict, match="key"):
        await home.facts.patch("ada", here.id, {"scope": "user"})
    assert await home.known(thread="t1") == {"city": "Rome"}


WRONG: list[tuple[FactEdit, str]] = [
    ({"value": "  "}, "value"),
    ({"value": "x" * 1_001}, "value"),
    ({"value": "a\x00b"}, "value"),
    ({"value": "\ud800"}, "value"),
    ({"value": "v", "statement": ""}, "statement"),
    ({"value": "v", "statement": "x" * 2_001}, "statement"),
    ({"value": "v", "tags": ["x"] * 11}, "tags"),
    ({"value": "v", "tags": [" "]}, "tags"),
    ({"value": "v", "tags": ["x" * 65]}, "tags"),
    ({"value": "v", "tags": ["\ud800"]}, "tags"),
    ({"value": "v", "importance": 1.1}, "importance"),
    ({"value": "v", "importance": float("nan")}, "importance"),
    ({"value": "v", "scope": "thread"}, "thread_id"),
    ({"value": "v", "thread_id": "t1"}, "thread_id"),
    ({"value": "v", "scope": "thread", "thread_id": "a/b"}, "thread_id"),
    ({"value": "v", "scope": "global"}, "scope"),
]


@pytest.mark.parametrize(("edit", "field"), WRONG)
async def test_wrong_fields_are_named_and_nothing_is_stored(home: House, edit: FactEdit, field: str) -> None:
    made = await home.facts.put("ada", "name", {"value": "Ada"})
    for call in (home.facts.put("ada", "diet", edit), home.facts.patch("ada", made.id, edit)):
        with pytest.raises(InvalidRequest) as raised:
            await call
        assert field in [problem.field for problem in raised.value.problems]
    assert await home.known() == {"name": "Ada"}


async def test_keys_values_and_times_are_checked_together(home: House) -> None:
    for key in ("", "Name", "1st", "a b", "x" * 65, "name\n"):
        with pytest.raises(InvalidRequest, match="key"):
            await home.facts.put("ada", key, {"value": "v"})
    with pytest.raises(InvalidRequest, match="value"):
        await home.facts.put("ada", "diet", {"pinned": True})
    now = home.clock()
    with pytest.raises(InvalidRequest, match="valid_to"):
        await home.facts.put("ada", "diet", {"value": "v", "valid_from": now, "valid_to": now})
    with pytest.raises(InvalidRequest, match="scope"):
        await home.facts.put(GLOBAL_USER, "diet", {"value": "v", "scope": "thread", "thread_id": "t1"})


async def test_a_threads_facts_stay_within_their_bound(home: House) -> None:
    assert MOST_THREAD_FACTS == 100
    for number in range(MOST_THREAD_FACTS + 3):
        edit: FactEdit = {"value": "v", "scope": "thread", "thread_id": "t1", "importance": number / 200}
        await home.facts.put("ada", f"key{number}", edit)
    known = await home.known(thread="t1")
    assert known.keys() == {f"key{number}" for number in range(3, MOST_THREAD_FACTS + 3)}
    await home.check_index()


async def test_another_users_fact_is_not_there(home: House) -> None:
    made = await home.facts.put("ada", "diet", {"value": "vegan"})
    for call in (
        home.facts.fact("bob", made.id),
        home.facts.history("bob", made.id),
        home.facts.patch("bob", made.id, {"value": "x"}),
        home.facts.forget("bob", made.id),
        home.facts.approve("bob", made.id),
        home.facts.reject("bob", made.id),
    ):
        with pytest.raises(NotFound):
            await call
    assert await home.known() == {"diet": "vegan"}


async def test_global_facts_are_everyones_and_kept_apart(home: House) -> None:
    made = await home.facts.put(GLOBAL_USER, "motto", {"value": "be kind"})
    assert made.scope == "global"
    assert await home.known() == {}
    shared = await home.store.facts.living(Scope("ada"), at=home.clock(), limit=9, with_global=True)
    assert [fact.id for fact in shared] == [made.id]
    recalled: dict[str, Any] = {"model": "m", "memory": {"facts": {"motto": "be kind"}, "hits": []}}
    await home.turn("a", result=recalled)
    await home.facts.forget(GLOBAL_USER, made.id)
    assert ((await home.stored("a")).result or {})["memory"]["facts"] == {}
    await home.stores.points.sync(GLOBAL_USER)
    await home.check_index()
