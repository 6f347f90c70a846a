"""Reads a conversation as its caller sees it: whole, or with the key of an agent what has that agent's label."""

from recollect.api.auth.agent_bounds import check_whole_thread, sees_message, sees_record
from recollect.api.auth.caller import Caller
from recollect.api.openai.responses.ids import turn_of_answer, turn_of_further, turn_of_input
from recollect.memory.memory import Memory
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.values.errors import NotFound
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Exchange, Turn

NO_CONVERSATION = "There is no such conversation of this user."


def record_id(thread_id: str) -> str:
    """Return the id of a conversation's record: no turn's id holds a slash."""
    return f"conversation/{thread_id}"


@frozen
class SeenConversation:
    """The conversation of a thread, as a caller sees it."""

    memory: Memory
    scope: Scope
    caller: Caller

    async def record(self) -> ClientRecord:
        """Return the record of the conversation; one as it would be, where only turns made it.

        Raises:
            NotFound: nobody has made it or written to it, or the caller's agent has not.
        """
        scope, agent_id = self.scope, self.caller.agent_id
        kept = await self.memory.client_records.record(user_id=scope.user_id, record_id=record_id(scope.thread))
        if kept is not None and sees_record(agent_id, kept):
            return kept
        try:
            begun = (await self.memory.threads.overview(scope, agent_id=agent_id)).last_activity_at
        except NotFound:
            raise NotFound(NO_CONVERSATION) from None
        first = await self.memory.messages(scope, limit=1) if agent_id is None else []
        begun = first[0].created_at if first else begun
        return ClientRecord(scope.user_id, scope.thread, record_id(scope.thread), "conversation", begun)

    async def check_whole(self) -> None:
        """Check that the caller may delete the conversation.

        Raises:
            NotFound: see `record`.
            Forbidden: the caller is bound to an agent, and others have written to it.
        """
        await self.record()
        if await self.memory.messages(self.scope, limit=1):
            await check_whole_thread(self.caller, self.memory, self.scope)

    async def turn_of(self, item_id: str) -> Turn | None:
        """Return the turn of the conversation that the item belongs to."""
        turn_id = turn_of_answer(item_id) or turn_of_input(item_id) or turn_of_further(item_id)
        if turn_id is None:
            return None
        turn = await self.memory.find_turn(user_id=self.scope.user_id, turn_id=turn_id)
        if turn is None or turn.message.thread_id != self.scope.thread:
            return None
        return turn if sees_message(self.caller.agent_id, turn.message) else None

    async def forwards(self, position: int | None, most: int) -> list[Exchange]:
        """Return `most` turns or a few more, if there are so many, from the one at this position on; oldest first."""
        found, after = list[Exchange](), (position or 0) - 2
        while len(found) < most:
            page = await self.memory.exchanges(self.scope, after=after, limit=most)
            found += [one for one in page if sees_message(self.caller.agent_id, one.user)]
            if len(page) < most:
                break
            after = page[-1].user.position
        return found

    async def backwards(self, position: int | None, most: int) -> list[Exchange]:
        """Return `most` turns or a few more, if there are so many, up to the one at this position; oldest first."""
        found, before = list[Exchange](), None if position is None else position + 2
        while len(found) < most:
            page = await self.memory.recent(self.scope, limit=most, before=before)
            found = [*(one for one in page if sees_message(self.caller.agent_id, one.user)), *found]
            if len(page) < most:
                break
            before = page[0].user.position
        return found
