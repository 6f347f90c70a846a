"""What is stored of a thread, as far as a chat client's own history reaches back."""

from collections.abc import Sequence
from dataclasses import dataclass

from graph.history import Known, align, goes_on, repeats_last
from graph.state import Json
from memory.documents import Conversations
from memory.scope import Scope
from memory.turn import Exchange, Message

MOST_TURNS = 200
"""So many turns are looked at; what a client sends of older ones passes for unknown."""


@dataclass(frozen=True, slots=True)
class Past:
    """The thread's last finished turns, oldest first (all of them where `is_whole`), and what came behind them."""

    history: Sequence[Json]
    turns: Sequence[Exchange]
    is_whole: bool
    last: Message | None

    def known(self, *, but_last: bool = False) -> Known:
        """Which of the client's messages are stored; `but_last`: not in the last turn, which is answered anew."""
        return align(self.history, self.turns[:-1] if but_last else self.turns)

    def is_asked_again(self, message: str) -> bool:
        """Whether the client asks for another answer to the last turn."""
        return self.last is None and repeats_last(self.history, message, self.turns, is_whole=self.is_whole)

    def unfinished(self, message: str) -> str | None:
        """The turn that has this message and no answer yet, if it is the thread's last one."""
        if self.last is None or self.last.content != message:
            return None
        follows = goes_on(self.history, self.turns, is_whole=self.is_whole)
        return self.last.turn_id if follows else None


async def read_past(conversations: Conversations, scope: Scope, history: Sequence[Json]) -> Past:
    """Read as many turns as the history may have, and one more."""
    said = sum(message["role"] == "user" for message in history)
    limit = min(said + 2, MOST_TURNS)
    turns = await conversations.recent(scope, limit=limit)
    behind = await conversations.messages(scope, limit=MOST_TURNS, after=turns[-1].assistant.position if turns else 0)
    unfinished = [message for message in behind if message.role == "user" and not message.absent]
    return Past(history, turns, len(turns) < limit, unfinished[-1] if unfinished else None)
