"""How much there is, counted."""

from dataclasses import replace

from recollect.memory.ports.counts import Counted
from recollect.memory.ports.store import Store
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import not_owed, owed
from tests.contracts.store.samples import NOW, SECOND, asked, fact, failed, finish, indexed, superseded


async def fill(store: Store) -> None:
    """Store two threads of ada's and one of bob's, one unfinished turn, and facts of every sort."""
    await finish(store, "a1", update=owed())
    await finish(store, "a2", update=indexed())
    await finish(store, "b1", thread_id="t2", update=owed())
    await store.conversations.accept(asked("open", thread_id="t2"))
    await finish(store, "a1", user_id="bob", update=failed())
    for each in (
        fact("known"),
        fact("here", scope="thread", thread_id="t1"),
        fact("taught", thread_id="t1"),
        superseded("was"),
        fact("waits", status="proposed"),
        fact("gone", status="forgotten"),
        fact("bobs", user_id="bob"),
        fact("zoes", user_id="zoe"),
        fact("shared", user_id=GLOBAL_USER, scope="global"),
    ):
        assert await store.facts.insert(each)
    assert await store.threads.put(ThreadRecord("yan", "t1", revision=1), revision=0)


class CountsContract:
    async def test_the_whole_service(self, store: Store):
        assert await store.counts.users() == 0
        assert await store.counts.count(None) == Counted()
        await fill(store)
        assert await store.counts.users() == 4, "ada, bob, yan and zoe: the global one is nobody"
        assert await store.counts.count(None) == Counted(threads=3, turns=4, messages=9, facts=6, pending=3)

    async def test_one_user(self, store: Store):
        await fill(store)
        count = store.counts.count
        assert await count(Scope("ada")) == Counted(threads=2, turns=3, messages=7, facts=3, pending=3)
        assert await count(Scope("bob")) == Counted(threads=1, turns=1, messages=2, facts=1)
        assert await count(Scope("zoe")) == Counted(facts=1)
        assert await count(Scope("eve")) == Counted()

    async def test_one_thread(self, store: Store):
        await fill(store)
        count = store.counts.count
        assert await count(Scope("ada", "t1")) == Counted(threads=1, turns=2, messages=4, facts=1, pending=2)
        assert await count(Scope("ada", "t2")) == Counted(threads=1, turns=1, messages=3, pending=1)
        assert await count(Scope("ada", "t3")) == Counted()
        assert await count(Scope("bob", "t2")) == Counted()

    async def test_what_was_not_said_is_no_message(self, store: Store):
        said = replace(asked("past"), imported_id="m1")
        absent = Message("ada", "t1", "past", "assistant", "", NOW + SECOND, absent=True)
        unasked = replace(asked("other", thread_id="t2"), content="", absent=True)
        told = Message("ada", "t2", "other", "assistant", "Hi!", NOW + SECOND, imported_id="m2")
        done = not_owed("import")
        await store.imports.insert([Turn(said, absent, {}, done), Turn(unasked, told, {}, done)])
        assert await store.counts.count(Scope("ada")) == Counted(threads=2, turns=2, messages=2)
        assert await store.counts.count(Scope("ada", "t1")) == Counted(threads=1, turns=1, messages=1)
        assert await store.counts.count(None) == Counted(threads=2, turns=2, messages=2)

    async def test_many_users_and_threads(self, store: Store):
        for number in range(24):
            await finish(store, f"n{number}", user_id=f"u{number % 8}", thread_id=f"t{number}")
        assert await store.counts.users() == 8
        assert (await store.counts.count(None)).threads == 24
        assert (await store.counts.count(Scope("u3"))).threads == 3
