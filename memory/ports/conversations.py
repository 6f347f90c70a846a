"""The conversations port, part of the store: messages of threads, and the turns that they make."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview
from recollect.memory.values.turn import Exchange, Message, Turn
from recollect.memory.values.update import Update


class Conversations(Protocol):
    """Messages of threads, in the order in which their turns were accepted."""

    @abstractmethod
    async def accept(self, message: Message) -> Message:
        """Insert the user's message as the newest of its thread and return it as stored.

        The store assigns `position` (odd, above all of the thread's) and a `created_at` strictly after the thread's
        newest message. If this user's turn already has its message, return the stored one unchanged, whatever text
        `message` has: the caller compares the two.
        """
        ...

    @abstractmethod
    async def commit(self, reply: Message, *, result: Mapping[str, Any], update: Update) -> bool:
        """Insert the assistant's message with its `result` and pending `update`: one atomic write commits the turn.

        `reply.position` is the accepted message's plus one. Return False, and change nothing, if the turn has a reply,
        or if the user's message is gone (erased while the turn was running).
        """
        ...

    @abstractmethod
    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        """Return the turn with all that is stored of it, or None."""
        ...

    @abstractmethod
    async def messages(self, scope: Scope, *, limit: int, after: int = 0, where: Narrow = ALL) -> list[Message]:
        """Return the thread's messages with position > `after`, oldest first, those of unfinished turns included."""
        ...

    @abstractmethod
    async def recent(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Exchange]:
        """Return the thread's last `limit` finished turns, oldest first.

        With `before`, only turns whose messages have positions below it.
        """
        ...

    @abstractmethod
    async def count_turns(self, scope: Scope, *, at_most: int) -> int:
        """Count the finished turns of the thread (or of the user), but no further than `at_most`."""
        ...

    @abstractmethod
    def indexed_messages(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Message]]:
        """Yield all messages whose index step is done, which the index must hold.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    @abstractmethod
    async def count_indexed_messages(self) -> int:
        """Count the messages that `indexed_messages` yields for all users."""
        ...

    @abstractmethod
    async def exchanges(self, scope: Scope, *, after: int, limit: int) -> list[Exchange]:
        """Return the thread's finished turns whose user's message has a position > `after`, oldest first."""
        ...

    @abstractmethod
    async def overviews(
        self, user_id: str, *, limit: int, before: tuple[datetime, str] | None = None, text: str | None = None
    ) -> list[ThreadOverview]:
        """Return the user's threads without their records, latest activity first (ties: by thread id, descending).

        `before` is the (last activity, thread id) of the previous page's last thread, which is not returned again.
        `text`: only threads that have it, in whatever case, in their id, their title or their first message.
        """
        ...

    @abstractmethod
    async def overview(self, scope: Scope, *, agent_id: str | None = None) -> ThreadOverview | None:
        """Return the overview of one thread, without its record; None where it has no message.

        With `agent_id`, as if it had only the messages with the label of this agent.
        """
        ...

    @abstractmethod
    async def openings(self, user_id: str, thread_ids: Sequence[str], *, characters: int) -> dict[str, str]:
        """Return the first message of each of the threads (at most 500) that has one, cut to so many characters."""
        ...

    @abstractmethod
    async def threads_saying(self, user_id: str, said_hash: str, *, limit: int) -> list[str]:
        """Return the threads of the user's last `limit` messages with this hash (`said_hash`), the last first."""
        ...

    @abstractmethod
    async def last_position(self, scope: Scope) -> int:
        """Return the greatest position in the thread; 0 where it has no message."""
        ...

    @abstractmethod
    def turns(self, user_id: str) -> AsyncIterator[Sequence[Turn]]:
        """Yield all of the user's finished turns, in batches, in any order."""
        ...

    @abstractmethod
    def every(self, scope: Scope) -> AsyncIterator[Sequence[Turn]]:
        """Yield all turns of the user (or the thread), unfinished ones included, in batches of at most 250.

        The order is by thread id, ascending, and within a thread by position.
        """
        ...

    @abstractmethod
    async def rewrite(self, turn: Turn, *, result: Mapping[str, Any], update: Update) -> bool:
        """Replace a finished turn's result and update if the stored update equals `turn.update`; else return False.

        It compares with the stored update, not with a claim's generation: use it for a turn that nobody works on.
        """
        ...

    @abstractmethod
    async def recommit(
        self,
        turn: Turn,
        reply: Message,
        *,
        result: Mapping[str, Any],
        update: Update,
        generation: int | None = None,
    ) -> bool:
        """Replace a finished turn's reply if the stored update equals `turn.update`; else return False.

        One atomic write replaces its text, name, metadata and time, its result and its update. The reply keeps its
        position, its place in the order of commits, and its importer's id. Without `generation`, use it for a turn that
        nobody works on. With it, the caller holds the claim of that generation: the write also returns False if a
        higher generation has written the turn, and fences lower ones out from then on.
        """
        ...

    @abstractmethod
    async def retract(self, turn: Turn) -> bool:
        """Delete a finished turn's reply, with result and update, if the stored update equals `turn.update`.

        Else return False, and change nothing. The user's message stays: the turn is unfinished again, at its place. Use
        it for a turn that nobody works on.
        """
        ...

    @abstractmethod
    async def aged(self, *, before: datetime, limit: int) -> list[Message]:
        """Return messages of role "user", of any user, that were created before `before`, oldest first.

        Turns whose update is pending are left out; unfinished turns are included.
        """
        ...

    @abstractmethod
    async def count_messages(self, user_id: str) -> int:
        """Count the user's messages of both roles."""
        ...

    @abstractmethod
    async def oldest(self, user_id: str, *, limit: int) -> list[Message]:
        """Return the messages of role "user" of the user's oldest turns, oldest first.

        Turns whose update is pending are left out.
        """
        ...

    @abstractmethod
    async def remove(self, *, user_id: str, turn_ids: Sequence[str]) -> int:
        """Delete these turns (at most 500) with both messages of each; return how many messages were deleted."""
        ...

    @abstractmethod
    async def delete(self, scope: Scope) -> int:
        """Delete all messages of the thread (or of the user); return how many there were, `absent` ones not counted."""
        ...
