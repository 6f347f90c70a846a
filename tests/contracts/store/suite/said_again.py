"""Messages are found again by the hash of their text, in its own user's threads alone; a reply can be taken back."""

from dataclasses import replace
from datetime import timedelta

from recollect.memory.language.said_hash import said_hash
from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn
from tests.contracts.store.samples import NOW, answer, asked, failed, finish, indexed
from tests.contracts.store.suite.past_turns import past
from tests.contracts.store.suite.recommits import turn_of

HELLO = said_hash("Hello.")


class SaidAgainContract:
    async def test_a_hash_finds_the_threads_that_say_it_the_last_first(self, store: Store):
        conversations = store.conversations
        for number, text in enumerate(("Hello.", "Bye.", "  hELLO. \n", "Hello.")):
            at = NOW + timedelta(minutes=number)
            await conversations.accept(
                replace(asked(f"turn{number}", thread_id=f"t{number}", content=text), created_at=at)
            )
        message = await conversations.accept(asked("reply", thread_id="t9", content="What?"))
        await conversations.commit(answer(message, "Hello."), result={}, update=indexed())
        await conversations.accept(asked("turn1", user_id="bob", thread_id="t7"))
        assert await conversations.threads_saying("ada", HELLO, limit=9) == ["t3", "t2", "t0"]
        assert await conversations.threads_saying("ada", HELLO, limit=1) == ["t3"]
        assert await conversations.threads_saying("ada", HELLO, limit=0) == []
        await conversations.remove(user_id="ada", turn_ids=["turn3"])
        await conversations.delete(Scope("ada", "t0"))
        assert await conversations.threads_saying("ada", HELLO, limit=9) == ["t2"]

    async def test_imported_messages_are_found_too(self, store: Store):
        await store.imports.insert([past(1), past(2, thread_id="t2")])
        assert await store.conversations.threads_saying("ada", said_hash("Message 2."), limit=9) == ["t2"]

    async def test_a_reply_is_taken_back_and_the_message_stays(self, store: Store):
        conversations = store.conversations
        first = await finish(store, "first", update=indexed())
        await finish(store, "turn1", update=failed())
        bob = await finish(store, "turn1", user_id="bob", update=failed())
        turn = await turn_of(store)
        assert not await conversations.retract(replace(turn, update=indexed())), "its update has changed since"
        assert await turn_of(store) == turn
        assert await conversations.retract(turn)
        assert await turn_of(store) == Turn(turn.message)
        assert not await conversations.retract(turn)
        assert await conversations.recent(Scope("ada", "t1"), limit=9) == [first]
        assert (await turn_of(store, user_id="bob")).reply == bob.assistant
        reply = answer(turn.message, "Once more.")
        assert await conversations.commit(reply, result={}, update=indexed())
        assert await turn_of(store) == Turn(turn.message, reply, {}, indexed())
