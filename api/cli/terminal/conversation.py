"""One user's conversation over a service: its thread, its last turn, and the user's facts."""

from collections.abc import Generator
from contextlib import closing
from typing import Any
from uuid import uuid4

from recollect.api.cli.owner import OwnerRefused
from recollect.api.cli.terminal.client import Event, TerminalClient, parsed
from recollect.api.schemas.answers import (
    FactAnswer,
    FactsAnswer,
    HitAnswer,
    SearchAnswer,
    ThreadAnswer,
    ThreadsAnswer,
    TurnAnswer,
)

HITS = 10


class Conversation:
    """Runs turns of `user_id` in `thread_id`, and shows and changes what they have taught.

    Raises:
        Refused: from any call: the service refused it, or cannot be reached.
    """

    def __init__(self, client: TerminalClient, *, user_id: str, thread_id: str) -> None:
        self.user_id = user_id
        self.thread_id = thread_id
        self.client = client
        self._last: dict[str, Any] | None = None
        self._unanswered: dict[str, Any] | None = None

    def say(self, message: str, *, wait_for_memory: bool = False) -> Generator[Event]:
        """Run one turn and yield its events. A caller that leaves stops nothing: the turn is stored all the same.

        A message without an answer keeps its turn's id when it is said again: it is repeated, not stored twice.
        """
        turn = self._unanswered
        if turn is None or turn["message"] != message:
            turn = {
                "user_id": self.user_id,
                "thread_id": self.thread_id,
                "message": message,
                "turn_id": str(uuid4()),
            }
        before, self._last, self._unanswered = self._last, turn, turn
        was_accepted = False
        try:
            with closing(self.client.say({**turn, "wait_for_memory": wait_for_memory})) as events:
                for event in events:
                    was_accepted = True
                    if event.name == "message":
                        self._unanswered = None
                    yield event
        except OwnerRefused:
            if not was_accepted:
                self._last = before
            raise

    def settle(self) -> None:
        """Wait until the last turn was learned from, or until the service's own wait for that is over."""
        if self._last is not None and self._last is not self._unanswered:
            self.client.settled(self._last)

    def last_turn(self) -> TurnAnswer | None:
        """Return the thread's last turn with what it recalled and taught; None in an empty thread."""
        turn_id = self._last_turn_id()
        return None if turn_id is None else parsed(TurnAnswer, self.client.turn(self.user_id, turn_id))

    def facts(self) -> list[FactAnswer]:
        """Return the facts of the user, and of this thread."""
        return parsed(FactsAnswer, self.client.facts(self.user_id, thread_id=self.thread_id)).items

    def forget(self, named: str) -> list[FactAnswer]:
        """Forget the facts under a key, or the one whose id begins so (8 characters at least); return them.

        Raises:
            Refused: there is none.
        """
        facts = self.facts()
        found = [fact for fact in facts if fact.key == named]
        if not found and len(named) >= 8:
            found = [fact for fact in facts if fact.id.startswith(named)]
        if not found:
            raise OwnerRefused(f"Nothing is known under {named}; !facts lists what is.")
        for fact in found:
            self.client.forget(self.user_id, fact.id)
        return found

    def undo(self, *, force: bool) -> dict[str, Any]:
        """Undo what the last turn taught: {"turn_id", "undone", "left"}.

        Raises:
            Refused: there is no turn.
        """
        turn_id = self._last_turn_id()
        if turn_id is None:
            raise OwnerRefused("Nothing was said in this thread yet.")
        return self.client.undo(self.user_id, turn_id, force=force)

    def search(self, text: str) -> list[HitAnswer]:
        """Return the hits of a search in all of the user's memory."""
        return parsed(SearchAnswer, self.client.search(self.user_id, text, top_k=HITS)).hits

    def threads(self) -> list[ThreadAnswer]:
        """Return the user's threads, most recently written first."""
        return parsed(ThreadsAnswer, self.client.threads(self.user_id)).items

    def go_to(self, thread_id: str) -> None:
        """Switch to another thread."""
        self.thread_id = thread_id
        self._last = self._unanswered = None

    def clear(self) -> None:
        """Remove the thread's data; the user's facts stay."""
        self.client.clear(self.user_id, self.thread_id)
        self._last = self._unanswered = None

    def _last_turn_id(self) -> str | None:
        if self._last is not None:
            turn_id: str = self._last["turn_id"]
            return turn_id
        return self.client.last_turn_id(self.user_id, self.thread_id)
