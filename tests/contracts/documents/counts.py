"""How much there is, counted."""

from dataclasses import replace

from memory.counts import Counted
from memory.documents import Documents
from memory.scope import GLOBAL_USER, Scope
from memory.thread_record import ThreadRecord
from memory.turn import Message, Turn
from memory.update import not_owed, owed
from tests.contracts.documents.samples import NOW, SECOND, asked, fact, failed, finish, indexed, superseded


async def fill(documents: Documents) -> None:
    """Two threads of ada's and one of bob's, one unfinished turn, and facts of every sort."""
    await finish(documents, "a1", update=owed())
    await finish(documents, "a2", update=indexed())
    await finish(documents, "b1", thread_id="t2", update=owed())
    await documents.conversations.accept(asked("open", thread_id="t2"))
    await finish(documents, "a1", user_id="bob", update=failed())
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
        assert await documents.facts.insert(each)
    assert await documents.threads.put(ThreadRecord("yan", "t1", revision=1), revision=0)


class CountsContract:
    async def test_the_whole_service(self, documents: Documents):
        assert await documents.counts.users() == 0
        assert await documents.counts.count(None) == Counted()
        await fill(documents)
        assert await documents.counts.users() == 4, "ada, bob, yan and zoe: the global one is nobody"
        assert await documents.counts.count(None) == Counted(threads=3, turns=4, messages=9, facts=6, pending=3)

    async def test_one_user(self, documents: Documents):
        await fill(documents)
        count = documents.counts.count
        assert await count(Scope("ada")) == Counted(threads=2, turns=3, messages=7, facts=3, pending=3)
        assert await count(Scope("bob")) == Counted(threads=1, turns=1, messages=2, facts=1)
        assert await count(Scope("zoe")) == Counted(facts=1)
        assert await count(Scope("eve")) == Counted()

    async def test_one_thread(self, documents: Documents):
        await fill(documents)
        count = documents.counts.count
        assert await count(Scope("ada", "t1")) == Counted(threads=1, turns=2, messages=4, facts=1, pending=2)
        assert await count(Scope("ada", "t2")) == Counted(threads=1, turns=1, messages=3, pending=1)
        assert await count(Scope("ada", "t3")) == Counted()
        assert await count(Scope("bob", "t2")) == Counted()

    async def test_what_was_not_said_is_no_message(self, documents: Documents):
        said = replace(asked("past"), imported_id="m1")
        absent = Message("ada", "t1", "past", "assistant", "", NOW + SECOND, absent=True)
        unasked = replace(asked("other", thread_id="t2"), content="", absent=True)
        told = Message("ada", "t2", "other", "assistant", "Hi!", NOW + SECOND, imported_id="m2")
        done = not_owed("import")
        await documents.imports.insert([Turn(said, absent, {}, done), Turn(unasked, told, {}, done)])
        assert await documents.counts.count(Scope("ada")) == Counted(threads=2, turns=2, messages=2)
        assert await documents.counts.count(Scope("ada", "t1")) == Counted(threads=1, turns=1, messages=1)
        assert await documents.counts.count(None) == Counted(threads=2, turns=2, messages=2)

    async def test_many_users_and_threads(self, documents: Documents):
        for number in range(24):
            await finish(documents, f"n{number}", user_id=f"u{number % 8}", thread_id=f"t{number}")
        assert await documents.counts.users() == 8
        assert (await documents.counts.count(None)).threads == 24
        assert (await documents.counts.count(Scope("u3"))).threads == 3
