import asyncio
from dataclasses import replace

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.thread_record import ThreadRecord
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NASTY_IDS, NASTY_TEXTS, NOW, SECOND, asked, fact

ADA = Scope("ada")
ADA_T1 = Scope("ada", "t1")
FULL = ThreadRecord(
    user_id="ada",
    thread_id="t1",
    title="Zürich \U0001f3d4",
    summary="They spoke of Zürich.",
    summary_by="model",
    summarised_to=12,
    summarised_at=NOW,
    archived_to=14,
    archived_at=NOW + SECOND,
    closing=True,
    revision=1,
    indexed=True,
)


def record(thread_id: str = "t1", *, user_id: str = "ada") -> ThreadRecord:
    return ThreadRecord(user_id, thread_id).revised()


def archived(thread_id: str = "t1", *, user_id: str = "ada") -> ThreadRecord:
    return replace(FULL, thread_id=thread_id, user_id=user_id, closing=False)


async def insert(store: Store, *records: ThreadRecord) -> None:
    for each in records:
        assert await store.threads.put(each, revision=0)


async def ids_of_indexed(store: Store, user_id: str | None = None) -> list[str]:
    found: list[str] = []
    async for batch in store.threads.indexed(user_id=user_id):
        assert 0 < len(batch) <= 500
        found += [f"{each.user_id}/{each.thread_id}" for each in batch]
    return sorted(found)


async def users_of(store: Store) -> list[str]:
    return [user_id async for batch in store.users() for user_id in batch]


class ThreadRecordsContract:
    more_than_a_batch = 520

    @pytest.mark.parametrize("given", [FULL, record()], ids=["full", "plain"])
    async def test_a_record_comes_back_as_it_was_stored(self, store: Store, given: ThreadRecord):
        assert await store.threads.record(ADA_T1) is None
        await insert(store, given)
        assert await store.threads.record(ADA_T1) == given
        assert await store.threads.record(Scope("ada", "t2")) is None
        assert await store.threads.record(Scope("bob", "t1")) is None

    @pytest.mark.parametrize("text", NASTY_TEXTS)
    async def test_any_text_comes_back(self, store: Store, text: str):
        given = replace(FULL, title=text, summary=text)
        await insert(store, given)
        assert await store.threads.record(ADA_T1) == given

    async def test_a_put_writes_the_whole_record_under_the_revision_that_was_read(self, store: Store):
        threads = store.threads
        assert not await threads.put(FULL, revision=1)
        await insert(store, record(), record("t2"), record(user_id="bob"))
        assert not await threads.put(FULL, revision=0)
        second = replace(FULL, revision=2)
        assert await threads.put(second, revision=1)
        assert not await threads.put(record().revised(title="late"), revision=1)
        assert await threads.record(ADA_T1) == second
        assert await threads.record(Scope("ada", "t2")) == record("t2")
        assert await threads.record(Scope("bob", "t1")) == record(user_id="bob")
        third = ThreadRecord("ada", "t1", revision=3)
        assert await threads.put(third, revision=2)
        assert await threads.record(ADA_T1) == third

    async def test_of_concurrent_puts_one_wins(self, store: Store):
        for revision in (0, 1):
            rivals = [replace(FULL, title=str(number), revision=revision + 1) for number in range(10)]
            won = await asyncio.gather(*(store.threads.put(rival, revision=revision) for rival in rivals))
            assert sum(won) == 1
            assert await store.threads.record(ADA_T1) == rivals[won.index(True)]

    async def test_several_records_are_read_at_once(self, store: Store):
        await insert(store, FULL, record("t2"), record("t3", user_id="bob"))
        found = await store.threads.records(user_id="ada", thread_ids=["t1", "t2", "t3", "t4"])
        assert sorted(found, key=lambda each: each.thread_id) == [FULL, record("t2")]
        assert await store.threads.records(user_id="ada", thread_ids=[]) == []

    async def test_records_whose_archive_owes_a_summary_are_closing(self, store: Store):
        closing = [replace(record(thread_id), closing=True) for thread_id in ("t1", "t2")]
        await insert(store, *closing, replace(closing[0], user_id="bob"), archived("t3"))
        found = await store.threads.closing(limit=9)
        assert sorted(found, key=lambda each: (each.user_id, each.thread_id)) == [
            *closing,
            replace(closing[0], user_id="bob"),
        ]
        assert len(await store.threads.closing(limit=2)) == 2
        assert await store.threads.closing(limit=0) == []
        assert await store.threads.put(archived().revised(), revision=1)
        assert len(await store.threads.closing(limit=9)) == 2

    async def test_what_the_index_has_not_followed_is_owed(self, store: Store):
        threads = store.threads
        await insert(store, record(), record("t2"), archived("t3"), archived(user_id="bob"), record(user_id="cleo"))
        owed = await threads.owed(user_id="ada", limit=9)
        assert sorted(each.thread_id for each in owed) == ["t1", "t2"]
        assert len(await threads.owed(user_id="ada", limit=1)) == 1
        assert await threads.owed(user_id="bob", limit=9) == []
        assert sorted(await threads.owed_users(limit=9)) == ["ada", "cleo"]
        assert len(await threads.owed_users(limit=1)) == 1

    async def test_an_indexed_revision_is_marked_once_it_is_the_latest(self, store: Store):
        threads = store.threads
        await insert(store, record())
        second = record().revised(title="x")
        assert await threads.put(second, revision=1)
        assert not await threads.mark_indexed(record())
        assert await threads.record(ADA_T1) == second
        assert await threads.mark_indexed(second)
        assert await threads.mark_indexed(second)
        assert await threads.record(ADA_T1) == replace(second, indexed=True)
        assert not await threads.mark_indexed(record("missing"))
        assert await threads.owed_users(limit=9) == []

    async def test_only_archived_threads_with_a_summary_must_have_a_point(self, store: Store):
        await insert(
            store,
            archived(),
            archived(user_id="bob"),
            replace(archived("no summary"), summary=None),
            replace(archived("empty"), summary=""),
            replace(archived("open"), archived_to=0),
            replace(archived("owed"), indexed=False),
        )
        assert await ids_of_indexed(store) == ["ada/t1", "bob/t1"]
        assert await ids_of_indexed(store, "ada") == ["ada/t1"]
        assert await ids_of_indexed(store, "eve") == []
        assert await store.threads.count_indexed() == 2

    async def test_indexed_records_come_in_batches(self, store: Store):
        given = [archived(f"t{number}") for number in range(self.more_than_a_batch)]
        await asyncio.gather(*(store.threads.put(each, revision=0) for each in given))
        expected = sorted(f"ada/{each.thread_id}" for each in given)
        assert await ids_of_indexed(store) == expected
        assert await ids_of_indexed(store, "ada") == expected
        assert await store.threads.count_indexed() == self.more_than_a_batch

    async def test_deleting_takes_the_threads_record_or_all_of_the_users(self, store: Store):
        await insert(store, record(), record("t2"), record("t3"), record(user_id="bob"))
        assert [await store.threads.delete(ADA_T1) for _ in range(2)] == [1, 0]
        assert await store.threads.record(Scope("ada", "t2")) == record("t2")
        assert [await store.threads.delete(ADA) for _ in range(2)] == [2, 0]
        assert await store.threads.owed_users(limit=9) == ["bob"]

    async def test_hostile_ids_are_only_ids(self, store: Store):
        pairs = [(user_id, thread_id) for user_id in NASTY_IDS[:4] for thread_id in NASTY_IDS[:4]]
        for user_id, thread_id in pairs:
            await insert(store, record(thread_id, user_id=user_id))
        for user_id, thread_id in pairs:
            assert await store.threads.record(Scope(user_id, thread_id)) == record(thread_id, user_id=user_id)

    async def test_users_are_those_who_have_anything(self, store: Store):
        assert await users_of(store) == []
        for user_id in ("zoe", "both", "ada"):
            await store.conversations.accept(asked(user_id=user_id))
        await store.facts.insert(fact(user_id="both"))
        await store.facts.insert(fact("f2", user_id="mia", status="forgotten"))
        await store.facts.insert(fact("g", user_id=GLOBAL_USER, scope="global"))
        await insert(store, record(user_id="both"), record(user_id="kim"))
        assert await users_of(store) == [GLOBAL_USER, "ada", "both", "kim", "mia", "zoe"]
        await store.conversations.delete(Scope("both"))
        await store.conversations.delete(Scope("zoe"))
        assert await users_of(store) == [GLOBAL_USER, "ada", "both", "kim", "mia"]

    async def test_many_users_come_in_batches(self, store: Store):
        given = [f"u{number}" for number in range(self.more_than_a_batch)]
        await asyncio.gather(*(store.threads.put(record(user_id=user_id), revision=0) for user_id in given))
        await insert(store, *(record(f"t{number}", user_id="u5") for number in range(2, 120)))
        batches = [batch async for batch in store.users()]
        assert all(0 < len(batch) <= 500 for batch in batches)
        assert [user_id for batch in batches for user_id in batch] == sorted(given)

    async def test_reopening_keeps_everything(self, backend: Backend):
        async with backend() as store:
            await insert(store, FULL)
        async with backend() as store:
            assert await store.threads.record(ADA_T1) == FULL
