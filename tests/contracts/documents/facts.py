import asyncio
from dataclasses import replace

import pytest

from memory.documents import Documents
from memory.fact import Fact
from memory.scope import Scope
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.samples import NASTY_IDS, NASTY_TEXTS, NOW, SECOND, fact

ADA = Scope("ada")
ADA_T1 = Scope("ada", "t1")


class FactsContract:
    async def test_a_fact_comes_back_as_it_was_stored(self, documents: Documents):
        full = Fact(
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
        )
        plain = fact("f2", key=None)
        assert await documents.facts.insert(full)
        assert await documents.facts.insert(plain)
        assert await documents.facts.fact(user_id="ada", fact_id="f:1@x") == full
        assert await documents.facts.fact(user_id="ada", fact_id="f2") == plain
        assert await documents.facts.fact(user_id="bob", fact_id="f2") is None

    @pytest.mark.parametrize("text", NASTY_TEXTS)
    async def test_any_text_comes_back(self, documents: Documents, text: str):
        given = fact(value=text, statement=text, evidence=text, tags=(text,))
        assert await documents.facts.insert(given)
        assert await documents.facts.living(ADA, limit=9) == [given]

    async def test_an_insert_happens_once_per_user(self, documents: Documents):
        assert await documents.facts.insert(fact())
        assert not await documents.facts.insert(fact(value="Other"))
        assert await documents.facts.insert(fact(user_id="bob", value="Bob"))
        assert await documents.facts.fact(user_id="ada", fact_id="f1") == fact()

    async def test_of_concurrent_inserts_one_wins(self, documents: Documents):
        won = await asyncio.gather(*(documents.facts.insert(fact(value=str(n))) for n in range(10)))
        assert sum(won) == 1
        (stored,) = await documents.facts.living(ADA, limit=9)
        assert stored.value == str(won.index(True))

    async def test_a_fact_ends_once(self, documents: Documents):
        await documents.facts.insert(fact())
        await documents.facts.insert(fact(user_id="bob"))
        end = NOW + SECOND
        assert sum(await asyncio.gather(*(documents.facts.end(fact(), at=end) for _ in range(5)))) == 1
        ended = replace(fact(), valid_to=end, updated_at=end)
        assert await documents.facts.fact(user_id="ada", fact_id="f1") == ended
        assert not await documents.facts.end(fact(), at=end + SECOND)
        assert not await documents.facts.end(fact("missing"), at=end)
        assert await documents.facts.living(ADA, limit=9) == []
        assert await documents.facts.living(Scope("bob"), limit=9) == [fact(user_id="bob")]

    async def test_a_confirmation_never_goes_back(self, documents: Documents):
        await documents.facts.insert(fact())
        assert await documents.facts.confirm(fact(), at=NOW + 5 * SECOND)
        assert await documents.facts.confirm(fact(), at=NOW + SECOND)
        confirmed = replace(fact(), confirmed_at=NOW + 5 * SECOND)
        assert await documents.facts.fact(user_id="ada", fact_id="f1") == confirmed
        assert not await documents.facts.confirm(fact("missing"), at=NOW)
        assert not await documents.facts.confirm(fact(user_id="bob"), at=NOW)
        assert await documents.facts.end(fact(), at=NOW)
        assert not await documents.facts.confirm(fact(), at=NOW + 9 * SECOND)

    async def test_a_thread_sees_its_own_facts_and_the_users(self, documents: Documents):
        own = [fact("user_old", age=9), fact("user_new", age=1, thread_id="t2")]
        here = [
            fact("here_old", age=5, scope="thread", thread_id="t1"),
            fact("here_new", scope="thread", thread_id="t1"),
        ]
        there = fact("there", scope="thread", thread_id="t2")
        ended = fact("ended", valid_to=NOW)
        for each in (*own, *here, there, ended, fact(user_id="bob")):
            assert await documents.facts.insert(each)
        living = documents.facts.living
        assert await living(ADA, limit=9) == [own[1], own[0]]
        assert await living(ADA_T1, limit=9) == [here[1], own[1], here[0], own[0]]
        assert await living(ADA_T1, limit=3) == [here[1], own[1], here[0]]
        assert await living(ADA_T1, limit=0) == []
        assert await living(Scope("ada", "t3"), limit=9) == [own[1], own[0]]
        assert await living(Scope("eve"), limit=9) == []
        assert await documents.facts.page(ADA_T1, limit=9) == [own[0], here[0], own[1], here[1]]

    async def test_pages_join_up(self, documents: Documents):
        # Equal times are ordered by id; one fact of the thread lies between.
        given = [fact(f"f{number}", age=9 - number // 2) for number in range(7)]
        given.append(fact("f30", age=8, scope="thread", thread_id="t1"))
        given.sort(key=lambda each: (each.created_at, each.id))
        for each in reversed(given):
            await documents.facts.insert(each)
        paged: list[Fact] = []
        while page := await documents.facts.page(ADA_T1, limit=3, after=paged[-1].id if paged else None):
            assert len(page) <= 3
            paged += page
        assert paged == given
        assert await documents.facts.living(ADA_T1, limit=9) == given[::-1]
        await documents.facts.end(given[2], at=NOW)
        assert await documents.facts.page(ADA_T1, limit=1, after=given[2].id) == [given[3]]
        assert await documents.facts.page(ADA_T1, limit=9, after="missing") == []

    async def test_deleting_a_thread_takes_its_own_facts_alone(self, documents: Documents):
        kept = fact("kept", thread_id="t1")
        for each in (kept, fact("here", scope="thread", thread_id="t1"), fact(user_id="bob")):
            await documents.facts.insert(each)
        await documents.facts.insert(fact("ended", scope="thread", thread_id="t1", valid_to=NOW))
        assert await documents.facts.delete(ADA_T1) == 2
        assert await documents.facts.delete(ADA_T1) == 0
        assert await documents.facts.living(ADA_T1, limit=9) == [kept]

    async def test_deleting_a_user_takes_all_their_facts(self, documents: Documents):
        bob = fact("other", user_id="bob")
        for each in (fact(), fact("here", scope="thread", thread_id="t1"), fact("ended", valid_to=NOW), bob):
            await documents.facts.insert(each)
        assert await documents.facts.delete(ADA) == 3
        assert await documents.facts.delete(ADA) == 0
        assert await documents.facts.fact(user_id="ada", fact_id="ended") is None
        assert await documents.facts.living(Scope("bob"), limit=9) == [bob]

    async def test_hostile_ids_are_only_ids(self, documents: Documents):
        for user_id in NASTY_IDS:
            assert await documents.facts.insert(fact(user_id, user_id=user_id, scope="thread", thread_id=user_id))
        for user_id in NASTY_IDS:
            (found,) = await documents.facts.living(Scope(user_id, user_id), limit=9)
            assert found.id == user_id

    async def test_reopening_keeps_everything(self, backend: Backend):
        async with backend() as documents:
            await documents.facts.insert(fact())
        async with backend() as documents:
            assert await documents.facts.living(ADA, limit=9) == [fact()]
