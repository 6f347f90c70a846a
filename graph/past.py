"""Reads as many of a thread's stored turns as a chat client's own history reaches back."""

from collections.abc import Sequence

from recollect.graph.history import (
    KnownMessage,
    align,
    ends_with,
    goes_on,
    history_fingerprint,
    leading_system,
    repeats_last,
)
from recollect.graph.state import Json
from recollect.memory.memory import Memory
from recollect.memory.values.errors import NotFound
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Exchange, Message

FINGERPRINT = "client_history"
"""The key of a turn's result that holds the fingerprint of the client's history before the turn."""
MOST_TURNS = 200
"""The most turns that are read; a client's messages of older turns count as unknown."""


@frozen
class Past:
    """The thread's last finished turns, oldest first (all where `is_whole`), and the `last` unanswered message.

    `kept` is the fingerprint of the client's history before the last of them, where a chat client asked for it.
    `is_newest`: no turn that the caller does not see has followed them.
    """

    history: Sequence[Json]
    turns: Sequence[Exchange]
    is_whole: bool
    last: Message | None
    kept: str | None = None
    is_newest: bool = True

    def known(self, *, but_last: bool = False) -> KnownMessage:
        """Match the client's history to the stored messages; `but_last` leaves out the regenerated last turn."""
        return align(self.history, self.turns[:-1] if but_last else self.turns)

    def is_asked_again(self, message: str) -> bool:
        """Tell whether the client asks for another answer to the last turn."""
        if self.last is not None or not self.is_newest:
            return False
        return repeats_last(self.history, message, self.turns, is_whole=self.is_whole, kept=self.kept)

    def unfinished(self, message: str) -> str | None:
        """Return the id of the thread's last turn if it has this `message` and no answer yet: the client retries it.

        A client whose history shows the message, without an answer, continues after it and does not retry.
        """
        if self.last is None or self.last.content != message or ends_with(self.history, message):
            return None
        follows = goes_on(self.history, self.turns, is_whole=self.is_whole)
        return self.last.turn_id if follows else None


async def read_past(memory: Memory, scope: Scope, history: Sequence[Json], *, agent_id: str | None = None) -> Past:
    """Read as many turns as the history may have, and one more; with `agent_id`, those with this agent's label."""
    said = sum(message["role"] == "user" for message in history)
    limit = min(said + 2, MOST_TURNS)
    turns = await memory.recent(scope, limit=limit)
    behind = await memory.messages(scope, limit=MOST_TURNS, after=turns[-1].assistant.position if turns else 0)
    unfinished = [message for message in behind if message.role == "user" and not message.absent]
    last = unfinished[-1] if unfinished else None
    own = [turn for turn in turns if agent_id in (None, turn.user.agent_id)]
    if last is not None and agent_id not in (None, last.agent_id):
        last = None
    kept = await _kept(memory, own[-1].user) if own and last is None and history_fingerprint(history) else None
    return Past(history, own, len(turns) < limit, last, kept, is_newest=own[-1:] == turns[-1:])


@frozen
class Branch:
    """A history that goes on from an older turn: the stored messages, and the client's own around them."""

    history: tuple[Json, ...]
    known: KnownMessage


def continued(history: Sequence[Json], exchanges: Sequence[Exchange]) -> Branch:
    """Return the history with the messages of `exchanges` behind its leading system messages."""
    opening = leading_system(history)
    stored = [message for exchange in exchanges for message in exchange.messages]
    said = [{"role": message.role, "content": message.content} for message in stored]
    known = (*[None] * opening, *stored, *[None] * (len(history) - opening))
    return Branch((*history[:opening], *said, *history[opening:]), KnownMessage(known))


async def read_until(
    memory: Memory, scope: Scope, turn_id: str, limit: int, *, agent_id: str | None = None
) -> list[Exchange]:
    """Read the thread's last `limit` turns up to the turn `turn_id`; with `agent_id`, those with this agent's label.

    Raises:
        NotFound: the thread has no such turn.
    """
    turn = await memory.find_turn(user_id=scope.user_id, turn_id=turn_id)
    if turn is None or turn.reply is None or turn.message.thread_id != scope.thread:
        raise NotFound("The response that this one continues is gone.")
    return await memory.recent(scope, limit=limit, before=turn.message.position + 2, agent_id=agent_id)


async def _kept(memory: Memory, message: Message) -> str | None:
    """Return the fingerprint that is kept with the message's turn."""
    turn = await memory.find_turn(user_id=message.user_id, turn_id=message.turn_id)
    return None if turn is None or turn.result is None else turn.result.get(FINGERPRINT)
