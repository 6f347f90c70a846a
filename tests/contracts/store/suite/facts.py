import asyncio
from dataclasses import replace

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.scope import GLOBAL_USER, Scope
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NASTY_IDS, NASTY_METADATA, NASTY_TEXTS, NOW, SECOND, fact, superseded

ADA = Scope("ada")
ADA_T1 = Scope("ada", "t1")


def full_fact() -> Fact:
    return Fact(
        id="f:1@x",
        user_id="ada",
        key="home_town",
        value="Zürich \U0001f3d4",
        statement="The user's home town is Zürich.",
        created_at=NOW,
        updated_at=NOW + SECOND,
        confirmed_at=NOW + 2 * SECOND,
        valid_from=NOW.replace(year=1900),
        valid_to=NOW.replace(year=9999),
        scope="thread",
        thread_id="t1",
        turn_id="turn1",
        source="tool",
        tags=("a.b", "$c", ""),
        importance=0.1,
        pinned=True,
        evidence="I live in Zürich",
        replaces="f0",
        status="proposed",
        proposes="update",
        ended=Ended("review", NOW + 3 * SECOND, "turn2", "a reason \u2713"),
        revision=7,
        indexed=True,
        history=(full_version(), {"value": "Bern", "tags": [], "ended": None}),
        metadata=NASTY_METADATA,
        agent_id="support",
    )


def full_version() -> dict[str, object]:
    return {**replace(fact(), tags=("x", "y")).as_version(), "odd": dict(NASTY_METADATA)}


async def insert(store: Store, *facts: Fact) -> None:
    for each in facts:
        assert await store.facts.insert(each)


async def ids_of_indexed(store: Store, user_id: str | None = None) -> list[str]:
    found: list[str] = []
    async for batch in store.facts.indexed(user_id=user_id):
        assert 0 < len(batch) <= 500
        found += [each.id for each in batch]
    return sorted(found)


class FactsContract:
    more_than_a_batch = 520

    @pytest.mark.parametrize("given", [full_fact(), fact(key=None), superseded("f2")], ids=["full", "plain", "ended"])
    async def test_a_fact_comes_back_as_it_was_stored(self, store: Store, given: Fact):
        assert await store.facts.insert(given)
        assert await store.facts.fact(user_id="ada", fact_id=given.id) == given
        assert await store.facts.fact(user_id="bob", fact_id=given.id) is None

    @pytest.mark.parametrize("text", NASTY_TEXTS)
    async def test_any_text_comes_back(self, store: Store, text: str):
        given = fact(value=text, statement=text, evidence=text, tags=(text,), history=({"value": text},))
        assert await store.facts.insert(given)
        assert await store.facts.living(ADA, at=NOW, limit=9) == [given]

    async def test_an_insert_happens_once_per_user(self, store: Store):
        assert await store.facts.insert(fact())
        assert not await store.facts.insert(fact(value="Other"))
        assert await store.facts.insert(fact(user_id="bob", value="Bob"))
        assert await store.facts.fact(user_id="ada", fact_id="f1") == fact()

    async def test_of_concurrent_inserts_one_wins(self, store: Store):
        won = await asyncio.gather(*(store.facts.insert(fact(value=str(n))) for n in range(10)))
        assert sum(won) == 1
        stored = await store.facts.fact(user_id="ada", fact_id="f1")
        assert stored == fact(value=str(won.index(True)))

    async def test_many_are_inserted_at_once_and_known_ones_stay(self, store: Store):
        known, other = fact("f3"), fact("f5", user_id="bob")
        await insert(store, known, other)
        given = [replace(full_fact(), id="f0"), *(fact(f"f{number}", value="new") for number in range(1, 250))]
        assert await store.facts.insert_all(given) == {each.id for each in given} - {"f3"}
        found = await store.facts.facts(user_id="ada", fact_ids=[each.id for each in given])
        stored = {each.id: each for each in found}
        assert stored == {each.id: each for each in given} | {"f3": known}
        assert await store.facts.insert_all(given) == set()
        assert await store.facts.insert_all([]) == set()
        assert await store.facts.fact(user_id="bob", fact_id="f5") == other

    async def test_a_replace_writes_the_whole_fact_under_the_revision_that_was_read(self, store: Store):
        await insert(store, fact(), fact(user_id="bob"))
        second = replace(full_fact(), id="f1", revision=2)
        assert await store.facts.replace(second, revision=1)
        assert await store.facts.fact(user_id="ada", fact_id="f1") == second
        assert not await store.facts.replace(fact(value="late").revised(at=NOW), revision=1)
        assert not await store.facts.replace(fact("missing").revised(at=NOW), revision=1)
        assert await store.facts.fact(user_id="ada", fact_id="f1") == second
        assert await store.facts.fact(user_id="ada", fact_id="missing") is None
        assert await store.facts.fact(user_id="bob", fact_id="f1") == fact(user_id="bob")
        ended = second.revised(at=NOW, status="active", scope="user", ended=None, valid_to=None, valid_from=NOW)
        assert await store.facts.replace(ended, revision=2)
        assert await store.facts.living(ADA, at=NOW, limit=9) == [ended]

    async def test_of_concurrent_replaces_one_wins(self, store: Store):
        await insert(store, fact())
        rivals = [fact().revised(at=NOW, value=str(number)) for number in range(10)]
        won = await asyncio.gather(*(store.facts.replace(rival, revision=1) for rival in rivals))
        assert sum(won) == 1
        assert await store.facts.fact(user_id="ada", fact_id="f1") == rivals[won.index(True)]

    async def test_several_facts_are_read_at_once(self, store: Store):
        given = [fact(), superseded("f2"), full_fact()]
        await insert(store, *given, fact("f3", user_id="bob"))
        wanted = [each.id for each in given] + ["f3", "missing"]
        found = await store.facts.facts(user_id="ada", fact_ids=wanted)
        assert sorted(found, key=lambda each: each.id) == sorted(given, key=lambda each: each.id)
        assert await store.facts.facts(user_id="ada", fact_ids=[]) == []
        many = await store.facts.facts(user_id="ada", fact_ids=[f"no{n}" for n in range(499)] + ["f1"])
        assert many == [fact()]

    async def test_a_thread_sees_its_own_facts_and_the_users(self, store: Store):
        own = [fact("user_old", age=9), fact("user_new", age=1, thread_id="t2")]
        here = [
            fact("here_old", age=5, scope="thread", thread_id="t1"),
            fact("here_new", scope="thread", thread_id="t1"),
        ]
        there = fact("there", scope="thread", thread_id="t2")
        await insert(store, *own, *here, there, superseded("ended"), fact(user_id="bob"))
        living = store.facts.living
        assert await living(ADA, at=NOW, limit=9) == [own[1], own[0]]
        assert await living(ADA_T1, at=NOW, limit=9) == [here[1], own[1], here[0], own[0]]
        assert await living(ADA_T1, at=NOW, limit=3) == [here[1], own[1], here[0]]
        assert await living(ADA_T1, at=NOW, limit=0) == []
        assert await living(Scope("ada", "t3"), at=NOW, limit=9) == [own[1], own[0]]
        assert await living(Scope("eve"), at=NOW, limit=9) == []

    async def test_living_facts_are_active_and_their_validity_has_not_run_out(self, store: Store):
        shown = [
            superseded("still", valid_to=NOW + SECOND),
            fact("until", age=1, valid_to=NOW + SECOND),
            superseded("endless", age=2, valid_to=NOW.replace(year=9999)),
            fact("to come", age=3, valid_from=NOW + SECOND),
        ]
        hidden = [
            superseded("over"),
            fact("over by itself", valid_to=NOW),
            *(fact(status, status=status) for status in ("proposed", "rejected", "undone", "forgotten")),
        ]
        await insert(store, *hidden, *shown)
        assert await store.facts.living(ADA, at=NOW, limit=9) == shown
        assert await store.facts.living(ADA, at=NOW, limit=2) == shown[:2]
        later = await store.facts.living(ADA, at=NOW + SECOND, limit=9)
        assert [each.id for each in later] == ["endless", "to come"]

    async def test_living_facts_under_keys_are_those_alone(self, store: Store):
        shown = [fact("tea", key="drink"), superseded("dog", key="pet", age=1, valid_to=NOW + SECOND)]
        await insert(store, *shown, fact("town", key="home"), fact("note", key=None), superseded("cat", key="pet"))
        await insert(store, fact("hers", key="drink", user_id="bob"))
        living = store.facts.living
        assert await living(ADA, at=NOW, limit=9, keys=["pet", "drink", "'; DROP TABLE facts; --", "$ne"]) == shown
        assert await living(ADA, at=NOW, limit=1, keys=["pet", "drink"]) == shown[:1]
        assert await living(ADA, at=NOW, limit=9, keys=[]) == []

    async def test_a_superseded_fact_without_an_end_of_validity_holds_on(self, store: Store):
        given = replace(superseded("ended"), valid_to=None)
        await insert(store, given)
        assert await store.facts.living(ADA, at=NOW.replace(year=9000), limit=9) == [given]

    async def test_global_facts_come_along_where_asked(self, store: Store):
        shared = fact("shared", user_id=GLOBAL_USER, scope="global")
        ahead = superseded("ahead", user_id=GLOBAL_USER, scope="global", valid_to=NOW + SECOND, age=2)
        over = superseded("over", user_id=GLOBAL_USER, scope="global")
        await insert(store, shared, ahead, over, fact(age=1), fact("other", user_id="bob"))
        living = store.facts.living
        assert await living(ADA, at=NOW, limit=9) == [fact(age=1)]
        assert await living(ADA_T1, at=NOW, limit=9, with_global=True) == [shared, fact(age=1), ahead]
        assert await living(ADA, at=NOW, limit=2, with_global=True) == [shared, fact(age=1)]
        assert await living(Scope(GLOBAL_USER), at=NOW, limit=9, with_global=True) == [shared, ahead]

    async def test_proposed_facts_wait_newest_first(self, store: Store):
        own = [fact(f"own{age}", age=age, status="proposed", proposes="add") for age in (1, 3)]
        here = fact("here", age=2, status="proposed", scope="thread", thread_id="t1")
        there = fact("there", status="proposed", scope="thread", thread_id="t2")
        await insert(store, *own, here, there, fact(), fact("r", status="rejected"))
        await insert(store, fact("other", user_id="bob", status="proposed"))
        assert await store.facts.proposed(ADA, limit=9) == own
        assert await store.facts.proposed(ADA_T1, limit=9) == [own[0], here, own[1]]
        assert await store.facts.proposed(ADA_T1, limit=2) == [own[0], here]
        assert await store.facts.proposed(ADA, limit=0) == []

    async def test_what_holds_and_what_waits_is_known_together(self, store: Store):
        living = [fact(f"living{age}", age=age) for age in (1, 3, 5)]
        shared = fact("shared", user_id=GLOBAL_USER, age=4, scope="global")
        waiting = [fact(f"waits{age}", age=age, status="proposed") for age in (2, 6, 7)]
        await insert(store, *living, shared, *waiting, fact("r", status="rejected"), superseded("gone"))
        await insert(store, fact("wish", user_id=GLOBAL_USER, scope="global", status="proposed"))
        await insert(store, fact("there", scope="thread", thread_id="t2"))
        for most in (9, 3, 2, 1):
            holds = await store.facts.living(ADA_T1, at=NOW, limit=most, with_global=True)
            waits = await store.facts.proposed(ADA_T1, limit=most)
            assert await store.facts.known(ADA_T1, at=NOW, living=most, proposed=most) == (holds, waits)
            assert await store.facts.known(ADA_T1, at=NOW, living=most, proposed=0) == (holds, [])

    async def test_successors_name_what_they_replaced(self, store: Store):
        later = [fact("second", age=5, replaces="f1"), superseded("third", age=2, replaces="f1")]
        await insert(store, fact(age=9), *later[::-1], fact("other", replaces="f0"))
        await insert(store, fact("bobs", user_id="bob", replaces="f1"))
        assert await store.facts.successors(user_id="ada", fact_id="f1") == later
        assert await store.facts.successors(user_id="ada", fact_id="second") == []

    async def test_what_the_index_has_not_followed_is_owed(self, store: Store):
        facts = store.facts
        await insert(store, fact(), superseded("f2"), fact("f3", indexed=True), fact(user_id="bob", indexed=True))
        await insert(store, fact("g", user_id=GLOBAL_USER, scope="global"), fact(user_id="cleo"))
        owed = await facts.owed(user_id="ada", limit=9)
        assert sorted(each.id for each in owed) == ["f1", "f2"]
        assert len(await facts.owed(user_id="ada", limit=1)) == 1
        assert await facts.owed(user_id="bob", limit=9) == []
        assert sorted(await facts.owed_users(limit=9)) == [GLOBAL_USER, "ada", "cleo"]
        assert len(await facts.owed_users(limit=2)) == 2
        assert await facts.owed_users(limit=0) == []

    async def test_an_indexed_revision_is_marked_once_it_is_the_latest(self, store: Store):
        facts = store.facts
        await insert(store, fact(), fact(user_id="bob"))
        second = fact().revised(at=NOW, value="Other")
        assert await facts.replace(second, revision=1)
        assert not await facts.mark_indexed([fact()])
        assert await facts.fact(user_id="ada", fact_id="f1") == second
        assert await facts.mark_indexed([second])
        assert await facts.mark_indexed([second])
        assert await facts.fact(user_id="ada", fact_id="f1") == replace(second, indexed=True)
        assert not await facts.mark_indexed([fact("missing")])
        assert await facts.owed(user_id="ada", limit=9) == []
        assert await facts.owed_users(limit=9) == ["bob"]

    async def test_many_are_marked_at_once_each_at_its_own_revision(self, store: Store):
        facts, first = store.facts, [fact(f"f{number}") for number in range(4)]
        await insert(store, *first, fact("f1", user_id="bob"))
        changed = [first[2].revised(at=NOW, value="Other"), first[3].revised(at=NOW, value="Late")]
        for each in changed:
            assert await facts.replace(each, revision=1)
        seen = [first[0], first[1], changed[0], first[3], fact("missing")]
        assert await facts.mark_indexed(seen) == {"f0", "f1", "f2"}
        assert await facts.owed(user_id="ada", limit=9) == [changed[1]]
        assert await facts.owed_users(limit=9) == ["ada", "bob"]
        assert await facts.mark_indexed([]) == set()

    async def test_only_open_facts_that_the_index_follows_must_have_a_point(self, store: Store):
        await insert(
            store,
            fact(indexed=True),
            fact("until", indexed=True, valid_to=NOW),
            fact("owed"),
            superseded("ended", indexed=True),
            fact("undone", status="undone", indexed=True),
            fact("bobs", user_id="bob", indexed=True),
            fact("shared", user_id=GLOBAL_USER, scope="global", indexed=True),
        )
        assert await ids_of_indexed(store) == ["bobs", "f1", "shared", "until"]
        assert await ids_of_indexed(store, "ada") == ["f1", "until"]
        assert await ids_of_indexed(store, "eve") == []
        assert await store.facts.count_indexed() == 4

    async def test_indexed_facts_come_in_batches(self, store: Store):
        given = [fact(f"f{number}", indexed=True) for number in range(self.more_than_a_batch)]
        await asyncio.gather(*(store.facts.insert(each) for each in given))
        expected = sorted(each.id for each in given)
        assert await ids_of_indexed(store) == expected
        assert await ids_of_indexed(store, "ada") == expected
        assert await store.facts.count_indexed() == self.more_than_a_batch

    async def test_aged_facts_are_those_not_confirmed_for_long(self, store: Store):
        old = [superseded("ended", age=9), fact("old", age=8), fact("wish", user_id="bob", age=7, status="proposed")]
        await insert(store, *old[::-1], fact("pinned", age=9, pinned=True), fact("gone", age=9, status="forgotten"))
        await insert(store, fact("confirmed", age=9, confirmed_at=NOW), fact("new"))
        assert await store.facts.aged(before=NOW, limit=9) == old
        assert await store.facts.aged(before=NOW, limit=2) == old[:2]
        assert await store.facts.aged(before=old[1].confirmed_at, limit=9) == old[:1]
        assert await store.facts.aged(before=old[0].confirmed_at, limit=9) == []
        assert await store.facts.aged(before=NOW, limit=0) == []

    async def test_whether_a_user_has_facts_without_a_key(self, store: Store):
        await insert(store, fact("keyed"), superseded("ended", key=None), fact("undone", key=None, status="undone"))
        assert not await store.facts.has_notes(ADA)
        await insert(store, fact("note", key=None, scope="thread", thread_id="t1"))
        assert await store.facts.has_notes(ADA)
        assert await store.facts.has_notes(ADA_T1)
        assert not await store.facts.has_notes(Scope("bob"))

    async def test_notes_that_some_turns_have_taught_do_not_count(self, store: Store):
        await insert(store, fact("learned", key=None, turn_id="r1"))
        assert await store.facts.has_notes(ADA, besides=["r2"])
        assert not await store.facts.has_notes(ADA, besides=["r2", "r1"])
        await insert(store, fact("written", key=None, turn_id=None))
        assert await store.facts.has_notes(ADA, besides=["r1"])

    async def test_open_facts_are_counted_and_the_weakest_named(self, store: Store):
        weak = [
            fact("least", importance=0, confirmed_at=NOW),
            fact("older", age=2, importance=0.25),
            fact("newer", age=1, importance=0.25, scope="thread", thread_id="t1"),
            fact("best", age=9, importance=1, scope="thread", thread_id="t1"),
        ]
        await insert(store, *weak[::-1], fact("pinned", importance=0, pinned=True, scope="thread", thread_id="t1"))
        await insert(store, superseded("ended", importance=0), fact("undone", importance=0, status="undone"))
        await insert(store, fact("there", importance=0.5, scope="thread", thread_id="t2"), fact(user_id="bob"))
        facts = store.facts
        assert [await facts.count_open(scope) for scope in (ADA, ADA_T1, Scope("bob"), Scope("eve"))] == [6, 3, 1, 0]
        there = replace(weak[0], id="there", scope="thread", thread_id="t2", importance=0.5)
        assert await facts.weakest(ADA, limit=9) == [*weak[:3], there, weak[3]]
        assert await facts.weakest(ADA, limit=2) == weak[:2]
        assert await facts.weakest(ADA_T1, limit=9) == weak[2:]
        assert await facts.weakest(ADA_T1, limit=1) == weak[2:3]
        assert await facts.weakest(ADA, limit=0) == []

    async def test_named_facts_are_removed(self, store: Store):
        await insert(store, fact(), superseded("f2"), fact("kept"), fact(user_id="bob"))
        assert await store.facts.remove(user_id="ada", fact_ids=["f1", "f2", "missing"]) == 2
        assert await store.facts.remove(user_id="ada", fact_ids=["f1", "f2", "missing"]) == 0
        assert await store.facts.remove(user_id="ada", fact_ids=[]) == 0
        assert await store.facts.living(ADA, at=NOW, limit=9) == [fact("kept")]
        assert await store.facts.living(Scope("bob"), at=NOW, limit=9) == [fact(user_id="bob")]

    async def test_deleting_a_thread_takes_its_own_facts_alone(self, store: Store):
        kept = fact("kept", thread_id="t1")
        await insert(store, kept, fact("here", scope="thread", thread_id="t1"), fact(user_id="bob"))
        await insert(store, superseded("ended", scope="thread", thread_id="t1"))
        await insert(store, fact("wish", status="proposed", scope="thread", thread_id="t1"))
        assert await store.facts.delete(ADA_T1) == 3
        assert await store.facts.delete(ADA_T1) == 0
        assert await store.facts.living(ADA_T1, at=NOW, limit=9) == [kept]

    async def test_deleting_a_user_takes_all_their_facts(self, store: Store):
        bob = fact("other", user_id="bob")
        await insert(store, fact(), fact("here", scope="thread", thread_id="t1"), superseded("ended"), bob)
        assert await store.facts.delete(ADA) == 3
        assert await store.facts.delete(ADA) == 0
        assert await store.facts.fact(user_id="ada", fact_id="ended") is None
        assert await store.facts.owed_users(limit=9) == ["bob"]
        assert await store.facts.living(Scope("bob"), at=NOW, limit=9) == [bob]

    async def test_hostile_ids_are_only_ids(self, store: Store):
        for user_id in NASTY_IDS:
            assert await store.facts.insert(fact(user_id, user_id=user_id, scope="thread", thread_id=user_id))
        for user_id in NASTY_IDS:
            (found,) = await store.facts.living(Scope(user_id, user_id), at=NOW, limit=9)
            assert found.id == user_id
            assert await ids_of_indexed(store, user_id) == []
            assert await store.facts.mark_indexed([found])
            assert await ids_of_indexed(store, user_id) == [user_id]

    async def test_reopening_keeps_everything(self, backend: Backend):
        async with backend() as store:
            await insert(store, fact(), full_fact())
        async with backend() as store:
            assert await store.facts.living(ADA, at=NOW, limit=9) == [fact()]
            assert await store.facts.fact(user_id="ada", fact_id=full_fact().id) == full_fact()
