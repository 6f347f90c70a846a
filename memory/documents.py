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

from memory.counts import Counts
from memory.dates import Period
from memory.decision import FactScope
from memory.erasures import Erasures
from memory.fact import Fact, FactStatus
from memory.keys import Keys
from memory.library import Library
from memory.scope import Scope
from memory.thread_record import ThreadOverview, ThreadRecord
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
        """How many messages `indexed_messages` yields for all users."""
        ...

    async def exchanges(self, scope: Scope, *, after: int, limit: int) -> list[Exchange]:
        """The thread's finished turns whose user's message has a position > `after`, oldest first."""
        ...

    async def overviews(
        self, user_id: str, *, limit: int, before: tuple[datetime, str] | None = None
    ) -> list[ThreadOverview]:
        """The user's threads without their records, those last written to first (ties: by thread id, descending).

        `before` is the (last activity, thread id) of the last one of the page before.
        """
        ...

    async def overview(self, scope: Scope) -> ThreadOverview | None:
        """The thread alone, without its record; None where it has no message."""
        ...

    async def last_position(self, scope: Scope) -> int:
        """The greatest position in the thread; 0 where it has no message."""
        ...

    def turns(self, user_id: str) -> AsyncIterator[Sequence[Turn]]:
        """All of the user's finished turns, in batches, in any order."""
        ...

    def every(self, scope: Scope) -> AsyncIterator[Sequence[Turn]]:
        """All turns of the user (or the thread), unfinished ones too, in batches of at most 250.

        Thread by thread in ascending order of their ids, those of a thread by their position.
        """
        ...

    async def rewrite(self, turn: Turn, *, result: Mapping[str, Any], update: Update) -> bool:
        """Replace a finished turn's result and update if its update is stored as `turn.update` still says, else False.

        The comparison is with what is stored, not with a generation: for a turn that nobody works on.
        """
        ...

    async def recommit(
        self,
        turn: Turn,
        reply: Message,
        *,
        result: Mapping[str, Any],
        update: Update,
        generation: int | None = None,
    ) -> bool:
        """Replace a finished turn's reply if its update is stored as `turn.update` still says, else False.

        One write of its text, name, metadata and time, its result and its update; it keeps its place in the thread and
        among the commits, and its importer's id. Without a `generation`: for a turn that nobody works on. With one: for
        the holder of that claim, unless a higher one has written the turn; a lower one is fenced out from then on.
        """
        ...

    async def aged(self, *, before: datetime, limit: int) -> list[Message]:
        """The user's messages (role "user") of turns of any user begun before then, oldest first.

        Turns whose update is pending are left out; unfinished ones are not.
        """
        ...

    async def count_messages(self, user_id: str) -> int:
        """How many messages the user has."""
        ...

    async def oldest(self, user_id: str, *, limit: int) -> list[Message]:
        """The user's messages (role "user") of their oldest turns, oldest first, none whose update is pending."""
        ...

    async def remove(self, *, user_id: str, turn_ids: Sequence[str]) -> int:
        """Delete these turns, both messages of each (at most 500 turns), and say how many messages there were."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's messages (or all of the user's) and say how many there were."""
        ...


class Timeline(Protocol):
    """Messages by time and by place. Only those that search may find: said, and their turn's index step is done."""

    async def names(self, user_id: str, *, limit: int) -> list[str]:
        """The speakers' names in the user's messages, each once, ascending; looks at no message without one."""
        ...

    async def during(self, scope: Scope, period: Period, *, limit: int) -> list[Message]:
        """Messages of the thread (or the user) created within the period, oldest first."""
        ...

    async def latest(self, scope: Scope, *, limit: int) -> list[Message]:
        """The newest messages of the thread (or the user) by their time, newest first."""
        ...

    async def preceding(self, messages: Sequence[Message], *, count: int) -> dict[str, list[str]]:
        """For each of these (at most 500, of any users), by its id: the texts of up to `count` before it in its thread.

        The nearest comes first. One that is the first of its thread may be left out.
        """
        ...

    async def around(self, scope: Scope, position: int, *, before: int, after: int) -> list[Message]:
        """Up to `before` messages of the thread below this position and `after` above it, oldest first."""
        ...


class Imports(Protocol):
    """Turns of the past, as an importer brings them: many at a time, at the times they have."""

    async def known(self, user_id: str, imported_ids: Sequence[str]) -> dict[str, Message]:
        """Those of these ids (at most 500) under which a message of a finished turn is stored, with that message."""
        ...

    async def stored(self, user_id: str, turn_ids: Sequence[str]) -> dict[str, Turn]:
        """Those of these turns (at most 500) that are stored, unfinished ones too, by their ids."""
        ...

    async def insert(self, turns: Sequence[Turn]) -> int:
        """Store these turns (at most 500, of one user) behind their threads' newest, in this order.

        The store keeps `created_at` and assigns positions; where the message's own position lies above all that its
        thread holds by then, it is kept too. A turn without a reply is stored as unfinished. A turn that is there
        already stays as it is; one of which only the user's message is there is finished. Says how many turns are new,
        or finished now. All or, after a kill, some of them.
        """
        ...

    async def settle(self, user_id: str, turn_ids: Sequence[str], *, owed: Update, done: Update) -> int:
        """Record `done` for those of these turns (at most 500) whose update still is `owed`; say how many."""
        ...

    async def settle_each(self, turns: Sequence[Turn], *, done: Sequence[Update]) -> int:
        """Record each turn's own update in `done` (one a turn, at most 500) where that which the turn has is stored.

        Says how many.
        """
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one user's updates. `generation` rises with each new claim and fences out late owners."""

    user_id: str
    owner: str
    generation: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """A user's updates that are not done. `oldest` is when the oldest pending one's reply was made (UTC)."""

    pending: int = 0
    failed: int = 0
    oldest: datetime | None = None


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

    def failed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Turn]]:
        """Turns whose update has failed, in batches, in the order of their commits within a user."""
        ...

    async def backlog(self, user_id: str) -> Backlog:
        """How many of the user's updates are pending or have failed, and since when the oldest pending one waits."""
        ...

    async def waiting(self, *, at_most: int) -> Backlog:
        """The pending updates of all users, counting no further than `at_most` (at least 1); failed ones are left out.

        The oldest is the one that was committed first.
        """
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


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Which of a user's facts a list shows; what is None does not filter.

    Without `as_of` or `status`: facts that hold at `now`. `as_of`: those that held then. `status` "proposed" or
    "rejected": those, whatever their validity. `scope` None: the user's own, and with `thread_id` that thread's too;
    "thread": those of `thread_id`, or of all threads.
    """

    now: datetime
    scope: FactScope | None = None
    thread_id: str | None = None
    tag: str | None = None
    as_of: datetime | None = None
    status: FactStatus | None = None


class Facts(Protocol):
    """Facts: one document per id, written whole, each write under the revision that it was read at."""

    async def insert(self, fact: Fact) -> bool:
        """Store a new fact; False, and nothing changed, if its id exists for this user."""
        ...

    async def replace(self, fact: Fact, *, revision: int) -> bool:
        """Store `fact` in place of the one with its id, if that has `revision`; else False, and nothing changed."""
        ...

    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        """One fact in whatever state, or None."""
        ...

    async def facts(self, *, user_id: str, fact_ids: Sequence[str]) -> list[Fact]:
        """Those of these (at most 500) that exist, in any order."""
        ...

    async def living(self, scope: Scope, *, at: datetime, limit: int, with_global: bool = False) -> list[Fact]:
        """Active facts whose validity has not run out at `at`, newest first, superseded ones too while they hold.

        The user's own, and with a thread also that thread's; with `with_global` also the global ones.
        """
        ...

    async def proposed(self, scope: Scope, *, limit: int) -> list[Fact]:
        """Facts that wait for a person, newest first: the user's own, and with a thread also that thread's."""
        ...

    async def page(self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None) -> list[Fact]:
        """The facts that the filter shows, oldest first, starting behind the fact with id `after`."""
        ...

    async def notes(
        self, user_id: str, *, at: datetime, tag: str | None = None, limit: int, after: str | None = None
    ) -> list[Fact]:
        """The user's own facts without a key that hold at `at`, newest first, starting behind the fact `after`.

        With `tag` those that have it. Working memory of threads is left out.
        """
        ...

    async def successors(self, *, user_id: str, fact_id: str) -> list[Fact]:
        """The facts that name this one in `replaces`, oldest first."""
        ...

    async def owed(self, *, user_id: str, limit: int) -> list[Fact]:
        """The user's facts that the index has not followed yet, in any order."""
        ...

    async def owed_users(self, *, limit: int) -> list[str]:
        """Users (the global one too) who have such facts."""
        ...

    async def mark_indexed(self, fact: Fact) -> bool:
        """Say that the index follows this revision; False, and nothing changed, if there is a later one."""
        ...

    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Fact]]:
        """The facts that must have a point: `is_open` and `indexed`. In batches of at most 500, in any order."""
        ...

    async def count_indexed(self) -> int:
        """How many facts `indexed` yields for all users."""
        ...

    def every(self, user_id: str) -> AsyncIterator[Sequence[Fact]]:
        """All of the user's facts in whatever state, in batches of at most 500, in ascending order of their ids."""
        ...

    async def aged(self, *, before: datetime, limit: int) -> list[Fact]:
        """Facts of any user in any state, neither pinned nor forgotten, whose `confirmed_at` is before then."""
        ...

    async def count_open(self, scope: Scope) -> int:
        """How many open facts (`Fact.is_open`) the thread has; without a thread, the user in all scopes."""
        ...

    async def has_notes(self, scope: Scope) -> bool:
        """Whether the user has an open fact without a key, in any scope."""
        ...

    async def weakest(self, scope: Scope, *, limit: int) -> list[Fact]:
        """The open unpinned facts of `count_open`'s scope, least important first, then oldest `confirmed_at` first."""
        ...

    async def remove(self, *, user_id: str, fact_ids: Sequence[str]) -> int:
        """Delete these (at most 500) and say how many there were."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's own facts (scope "thread"), or all of the user's, and say how many there were."""
        ...


class Threads(Protocol):
    """Thread records: one document per thread, written whole, each write under the revision that it was read at."""

    async def record(self, scope: Scope) -> ThreadRecord | None:
        """The thread's record, or None."""
        ...

    async def records(self, *, user_id: str, thread_ids: Sequence[str]) -> list[ThreadRecord]:
        """The records of those of these threads (at most 500) that have one, in any order."""
        ...

    async def put(self, record: ThreadRecord, *, revision: int) -> bool:
        """Store `record` in place of the one with `revision` (0: there is none yet); else False, nothing changed."""
        ...

    async def closing(self, *, limit: int) -> list[ThreadRecord]:
        """Records of any user whose archive still owes a summary."""
        ...

    async def owed(self, *, user_id: str, limit: int) -> list[ThreadRecord]:
        """The user's records that the index has not followed yet."""
        ...

    async def owed_users(self, *, limit: int) -> list[str]:
        """Users who have such records."""
        ...

    async def mark_indexed(self, record: ThreadRecord) -> bool:
        """Say that the index follows this revision; False, and nothing changed, if there is a later one."""
        ...

    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[ThreadRecord]]:
        """The records that must have a point: `has_point` and `indexed`. In batches of at most 500, in any order."""
        ...

    async def count_indexed(self) -> int:
        """How many records `indexed` yields for all users."""
        ...

    def every(self, user_id: str) -> AsyncIterator[Sequence[ThreadRecord]]:
        """All of the user's records, in batches of at most 500, in ascending order of their threads' ids."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's record (or all of the user's) and say how many there were."""
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
    def timeline(self) -> Timeline:
        """Messages by time and by place."""
        ...

    @property
    def imports(self) -> Imports:
        """Turns that come in bulk."""
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
    def threads(self) -> Threads:
        """Thread records."""
        ...

    @property
    def library(self) -> Library:
        """Documents with their passages, and what threads have attached."""
        ...

    @property
    def counts(self) -> Counts:
        """How much there is of all this."""
        ...

    @property
    def queue(self) -> ThreadQueue:
        """The queue of each thread."""
        ...

    @property
    def keys(self) -> Keys:
        """Keys that callers show."""
        ...

    @property
    def erasures(self) -> Erasures:
        """Tombstones and receipts of what was erased."""
        ...

    def users(self) -> AsyncIterator[Sequence[str]]:
        """Every user who has a message, fact, thread record or document, the global one too: in batches, ascending."""
        ...

    async def ping(self) -> None:
        """Ask the backend whether it can serve; raises StoreUnavailable."""
        ...
