"""The documents port: the truth. Small Protocols by capability; `Documents` bundles what one backend offers.

Rules for every backend: a call carries its user (and thread); the missing is None, False, 0 or empty, never an error; a
backend that cannot be reached raises `StoreUnavailable`, and nothing else crosses this seam. All correctness rests on
single-document atomic writes (unique inserts, conditional updates): no transaction spans two documents.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from memory.fact import Fact
from memory.scope import Scope
from memory.turn import Exchange, Message, Turn
from memory.update import Update


class Conversations(Protocol):
    """Messages, in the order their turns were accepted."""

    async def accept(self, message: Message) -> Message:
        """Insert the user's message as the newest of its thread and return it as stored.

        The store assigns `position` (odd, above all of the thread's) and a `created_at` strictly after the thread's
        newest message. If this user's turn already has its message, that one is returned unchanged, whatever it says.
        """
        ...

    async def commit(self, reply: Message, *, result: Mapping[str, Any], update: Update) -> bool:
        """Insert the assistant's message with its result and pending update: one atomic write that commits the turn.

        `reply.position` is the accepted message's plus one. False, and nothing changed, if the turn has a reply, or if
        the user's message is gone (erased while the turn was running).
        """
        ...

    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        """The turn with all that is stored of it, or None."""
        ...

    async def messages(self, scope: Scope, *, limit: int, after: int = 0) -> list[Message]:
        """The thread's messages with position > `after`, oldest first, unfinished turns included."""
        ...

    async def recent(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Exchange]:
        """The last `limit` finished turns of the thread, oldest first; only those with a position below `before`."""
        ...

    async def count_turns(self, scope: Scope, *, at_most: int) -> int:
        """How many finished turns the thread (or the user) has, counting no further than `at_most`."""
        ...

    def indexed_messages(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Message]]:
        """All messages whose index step is done, in batches of at most 500, in any order: what the index must hold."""
        ...

    async def count_indexed_messages(self) -> int:
        """How many messages `indexed_messages` yields."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's messages (or all of the user's) and say how many there were."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one user's updates. `generation` rises with each new claim and fences out late owners."""

    user_id: str
    owner: str
    generation: int


class Updates(Protocol):
    """Pending updates, and the claim under which one process at a time works on a user's."""

    async def pending_users(self, *, limit: int) -> list[str]:
        """Users who have a turn whose update is pending, those waiting longest first."""
        ...

    async def pending(self, user_id: str, *, limit: int) -> list[Turn]:
        """The user's turns whose update is pending, in the order of their commits."""
        ...

    async def record(self, turn: Turn, update: Update, *, generation: int) -> bool:
        """Replace the turn's update unless a higher generation has written it (or it is gone): then False."""
        ...

    async def claim(self, user_id: str, *, owner: str, lease: timedelta, now: datetime) -> Claim | None:
        """Take the user for `lease` from `now` on; None while another owner's lease lives.

        The owner's own living claim is renewed under a new generation.
        """
        ...

    async def renew(self, claim: Claim, *, lease: timedelta, now: datetime) -> bool:
        """Extend the claim; False if it was lost (another generation, or released)."""
        ...

    async def release(self, claim: Claim) -> None:
        """Give the claim up, if it is still held. The generation stays, so that it keeps rising."""
        ...


class Facts(Protocol):
    """Facts, one document per version."""

    async def insert(self, fact: Fact) -> bool:
        """Store a new fact; False, and nothing changed, if its id exists for this user."""
        ...

    async def end(self, fact: Fact, *, at: datetime) -> bool:
        """Set `valid_to` and `updated_at` of a living fact; False if it is gone or has ended."""
        ...

    async def confirm(self, fact: Fact, *, at: datetime) -> bool:
        """Set `confirmed_at` of a living fact, never to an earlier time; False if it is gone or has ended."""
        ...

    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        """One fact, living or ended, or None."""
        ...

    async def living(self, scope: Scope, *, limit: int) -> list[Fact]:
        """Living facts in force for the scope, newest first: the user's own, and with a thread also that thread's."""
        ...

    async def page(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Fact]:
        """Living facts as `living`, oldest first, starting behind the fact with id `after`."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's own facts (scope "thread"), or all of the user's, and say how many there were."""
        ...


class ThreadQueue(Protocol):
    """Turns of one thread run one at a time, in order of arrival, across all processes on the same documents."""

    def turn(self, scope: Scope, *, wait_seconds: float) -> AbstractAsyncContextManager[None]:
        """Hold the thread for one turn.

        Raises:
            ThreadBusy: the thread did not come free within `wait_seconds`.
        """
        ...


class Documents(Protocol):
    """One backend's documents. Opened and closed by its `open_…` context manager."""

    @property
    def name(self) -> str:
        """What `/health` calls it: "sqlite" or "mongodb"."""
        ...

    @property
    def conversations(self) -> Conversations:
        """Messages and turns."""
        ...

    @property
    def facts(self) -> Facts:
        """Facts."""
        ...

    @property
    def updates(self) -> Updates:
        """Pending updates and claims."""
        ...

    @property
    def threads(self) -> ThreadQueue:
        """The queue of each thread."""
        ...

    async def ping(self) -> None:
        """Ask the backend whether it can serve; raises StoreUnavailable."""
        ...
