"""The store port: the truth. Small Protocols by capability; `Store` bundles what one backend offers.

Rules for every backend: a call carries its user (and thread); the missing is None, False, 0 or empty, never an error; a
backend that cannot be reached raises `StoreUnavailable`, and nothing else crosses this seam. `limit` bounds what a call
returns, and 0 returns nothing; all times are UTC in whole milliseconds. All correctness rests on atomic writes of
single records (unique inserts, conditional updates): no transaction spans two of them.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from recollect.memory.ports.counts import Counts
from recollect.memory.ports.documents import Documents
from recollect.memory.ports.erasures import Erasures
from recollect.memory.ports.keys import Keys
from recollect.memory.temporal.dates import Period
from recollect.memory.values.decision import FactScope
from recollect.memory.values.fact import Fact, FactStatus
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview, ThreadRecord
from recollect.memory.values.turn import Exchange, Message, Turn
from recollect.memory.values.update import Update


class Conversations(Protocol):
    """Messages of threads, in the order in which their turns were accepted."""

    async def accept(self, message: Message) -> Message:
        """Insert the user's message as the newest of its thread and return it as stored.

        The store assigns `position` (odd, above all of the thread's) and a `created_at` strictly after the thread's
        newest message. If this user's turn already has its message, return the stored one unchanged, whatever text
        `message` has: the caller compares the two.
        """
        ...

    async def commit(self, reply: Message, *, result: Mapping[str, Any], update: Update) -> bool:
        """Insert the assistant's message with its `result` and pending `update`: one atomic write commits the turn.

        `reply.position` is the accepted message's plus one. Return False, and change nothing, if the turn has a reply,
        or if the user's message is gone (erased while the turn was running).
        """
        ...

    async def turn(self, *, user_id: str, turn_id: str) -> Turn | None:
        """Return the turn with all that is stored of it, or None."""
        ...

    async def messages(self, scope: Scope, *, limit: int, after: int = 0) -> list[Message]:
        """Return the thread's messages with position > `after`, oldest first, those of unfinished turns included."""
        ...

    async def recent(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Exchange]:
        """Return the thread's last `limit` finished turns, oldest first.

        With `before`, only turns whose messages have positions below it.
        """
        ...

    async def count_turns(self, scope: Scope, *, at_most: int) -> int:
        """Count the finished turns of the thread (or of the user), but no further than `at_most`."""
        ...

    def indexed_messages(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Message]]:
        """Yield all messages whose index step is done, which the index must hold.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    async def count_indexed_messages(self) -> int:
        """Count the messages that `indexed_messages` yields for all users."""
        ...

    async def exchanges(self, scope: Scope, *, after: int, limit: int) -> list[Exchange]:
        """Return the thread's finished turns whose user's message has a position > `after`, oldest first."""
        ...

    async def overviews(
        self, user_id: str, *, limit: int, before: tuple[datetime, str] | None = None
    ) -> list[ThreadOverview]:
        """Return the user's threads without their records, latest activity first (ties: by thread id, descending).

        `before` is the (last activity, thread id) of the previous page's last thread, which is not returned again.
        """
        ...

    async def overview(self, scope: Scope) -> ThreadOverview | None:
        """Return the overview of one thread, without its record; None where it has no message."""
        ...

    async def last_position(self, scope: Scope) -> int:
        """Return the greatest position in the thread; 0 where it has no message."""
        ...

    def turns(self, user_id: str) -> AsyncIterator[Sequence[Turn]]:
        """Yield all of the user's finished turns, in batches, in any order."""
        ...

    def every(self, scope: Scope) -> AsyncIterator[Sequence[Turn]]:
        """Yield all turns of the user (or the thread), unfinished ones included, in batches of at most 250.

        The order is by thread id, ascending, and within a thread by position.
        """
        ...

    async def rewrite(self, turn: Turn, *, result: Mapping[str, Any], update: Update) -> bool:
        """Replace a finished turn's result and update if the stored update equals `turn.update`; else return False.

        It compares with the stored update, not with a claim's generation: use it for a turn that nobody works on.
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
        """Replace a finished turn's reply if the stored update equals `turn.update`; else return False.

        One atomic write replaces its text, name, metadata and time, its result and its update. The reply keeps its
        position, its place in the order of commits, and its importer's id. Without `generation`, use it for a turn that
        nobody works on. With it, the caller holds the claim of that generation: the write also returns False if a
        higher generation has written the turn, and fences lower ones out from then on.
        """
        ...

    async def aged(self, *, before: datetime, limit: int) -> list[Message]:
        """Return messages of role "user", of any user, that were created before `before`, oldest first.

        Turns whose update is pending are left out; unfinished turns are included.
        """
        ...

    async def count_messages(self, user_id: str) -> int:
        """Count the user's messages of both roles."""
        ...

    async def oldest(self, user_id: str, *, limit: int) -> list[Message]:
        """Return the messages of role "user" of the user's oldest turns, oldest first.

        Turns whose update is pending are left out.
        """
        ...

    async def remove(self, *, user_id: str, turn_ids: Sequence[str]) -> int:
        """Delete these turns (at most 500) with both messages of each; return how many messages were deleted."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete all messages of the thread (or of the user); return how many there were, `absent` ones not counted."""
        ...


class Timeline(Protocol):
    """Messages by time and by position.

    It returns only messages that search may find: not `absent`, and with the index step of their turn done.
    """

    async def names(self, user_id: str, *, limit: int) -> list[str]:
        """Return the distinct speakers' names in the user's messages, ascending.

        Messages without a name are not read.
        """
        ...

    async def during(self, scope: Scope, period: Period, *, limit: int) -> list[Message]:
        """Return the messages of the thread (or the user) created in `period` (end exclusive), oldest first."""
        ...

    async def latest(self, scope: Scope, *, limit: int) -> list[Message]:
        """Return the messages of the thread (or the user) that were created last, newest first."""
        ...

    async def preceding(self, messages: Sequence[Message], *, count: int) -> dict[str, list[str]]:
        """Return, by message id, the texts of up to `count` messages before each of `messages` in its thread.

        `messages` are at most 500, of any users. Each list begins with the nearest message. The first message of a
        thread may be missing from the result.
        """
        ...

    async def around(self, scope: Scope, position: int, *, before: int, after: int) -> list[Message]:
        """Return up to `before` messages of the thread below `position` and up to `after` above it, oldest first."""
        ...


class Imports(Protocol):
    """Turns of the past, as an importer brings them: many in one call, with the times they have."""

    async def known(self, user_id: str, imported_ids: Sequence[str]) -> dict[str, Message]:
        """Return stored messages of finished turns by their imported ids, of those in `imported_ids` (at most 500)."""
        ...

    async def stored(self, user_id: str, turn_ids: Sequence[str]) -> dict[str, Turn]:
        """Return, by turn id, those of `turn_ids` (at most 500) that are stored, unfinished turns included."""
        ...

    async def insert(self, turns: Sequence[Turn]) -> int:
        """Store `turns` (at most 500, of one user) behind their threads' newest, in this order.

        The store keeps `created_at` and assigns positions; it keeps a message's own position if that is above all
        positions in the thread by then. A turn without a reply is stored as unfinished. A turn that is stored already
        stays unchanged; one of which only the user's message is stored gets its reply. Return how many turns were
        inserted or finished. The call is not atomic: after a kill, some of the turns are stored.
        """
        ...

    async def settle(self, user_id: str, turn_ids: Sequence[str], *, owed: Update, done: Update) -> int:
        """Record `done` for those of `turn_ids` (at most 500) whose stored update equals `owed`; return how many."""
        ...

    async def settle_each(self, turns: Sequence[Turn], *, done: Sequence[Update]) -> int:
        """Record `done[i]` for `turns[i]` (at most 500) where the stored update equals that turn's `update`.

        Return how many were recorded.
        """
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one user's updates. `generation` rises with each new claim and fences out earlier owners."""

    user_id: str
    owner: str
    generation: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """A user's updates that are not done. `oldest` is when the oldest pending one's reply was created (UTC)."""

    pending: int = 0
    failed: int = 0
    oldest: datetime | None = None


class Updates(Protocol):
    """Pending updates, and the claims: one process at a time works on a user's updates."""

    async def pending_users(self, *, limit: int) -> list[str]:
        """Return users who have a turn whose update is pending, those who have waited longest first."""
        ...

    async def pending(self, user_id: str, *, limit: int, by_time: bool = False) -> list[Turn]:
        """Return the user's turns whose update is pending, in the order of their commits.

        With `by_time`, order them by their replies' `created_at`, then by commit: an imported turn has the time at
        which it took place.
        """
        ...

    async def record(self, turn: Turn, update: Update, *, generation: int) -> bool:
        """Replace the turn's update and store `generation` with it.

        Return False, and change nothing, if a higher generation has written the turn, or the turn is gone.
        """
        ...

    def failed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Turn]]:
        """Yield turns whose update has failed, in batches; within a user in the order of their commits.

        Without `user_id`, those of all users.
        """
        ...

    async def backlog(self, user_id: str) -> Backlog:
        """Return how many of the user's updates are pending or failed, and since when the oldest pending one waits."""
        ...

    async def waiting(self, *, at_most: int) -> Backlog:
        """Return how many updates of all users are pending, counted no further than `at_most` (at least 1).

        `failed` is not counted. `oldest` is the time of the update that was committed first.
        """
        ...

    async def claim(self, user_id: str, *, owner: str, lease: timedelta, now: datetime) -> Claim | None:
        """Take the user for `lease` from `now` on; return None while another owner's lease lives.

        If `owner` holds the living claim itself, renew it under a new generation.
        """
        ...

    async def renew(self, claim: Claim, *, lease: timedelta, now: datetime) -> bool:
        """Extend the claim to `now` plus `lease`; return False if it was lost (another generation, or released)."""
        ...

    async def release(self, claim: Claim) -> None:
        """Give the claim up, if it is still held. The generation stays stored, so that it keeps rising."""
        ...


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Which of a user's facts a list shows; a field that is None does not filter.

    Without `as_of` or `status`: facts that hold at `now`. `as_of`: facts that held then. `status` "proposed" or
    "rejected": facts of that status, whatever their validity. `scope` None: the user's own facts, and with `thread_id`
    that thread's too; "thread": facts of `thread_id`, or of all threads.
    """

    now: datetime
    scope: FactScope | None = None
    thread_id: str | None = None
    tag: str | None = None
    as_of: datetime | None = None
    status: FactStatus | None = None


class Facts(Protocol):
    """Facts: one record per id, written whole; each write names the revision that was read."""

    async def insert(self, fact: Fact) -> bool:
        """Store a new fact; return False, and change nothing, if this user has a fact with its id."""
        ...

    async def replace(self, fact: Fact, *, revision: int) -> bool:
        """Store `fact` in place of the stored one with its id if that has `revision`.

        Else return False, and change nothing.
        """
        ...

    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        """Return one fact in whatever state, or None."""
        ...

    async def facts(self, *, user_id: str, fact_ids: Sequence[str]) -> list[Fact]:
        """Return those of `fact_ids` (at most 500) that exist, in any order."""
        ...

    async def living(self, scope: Scope, *, at: datetime, limit: int, with_global: bool = False) -> list[Fact]:
        """Return active facts whose validity has not run out at `at`, newest first.

        A superseded fact counts while it holds. They are the user's own; with a thread in `scope` also that thread's;
        with `with_global` also the global ones.
        """
        ...

    async def proposed(self, scope: Scope, *, limit: int) -> list[Fact]:
        """Return facts that wait for a person, newest first: the user's own, and with a thread also that thread's."""
        ...

    async def page(self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None) -> list[Fact]:
        """Return the facts that `shown` selects, oldest first, starting behind the fact with id `after`.

        That fact itself need not be selected any more; if it does not exist any more, the page is empty.
        """
        ...

    async def notes(
        self, user_id: str, *, at: datetime, tag: str | None = None, limit: int, after: str | None = None
    ) -> list[Fact]:
        """Return the user's own facts without a key that hold at `at`, newest first, starting behind the fact `after`.

        With `tag`, only facts that have it. Threads' working memory is left out. The fact `after` need not hold any
        more; if it does not exist any more, the page is empty.
        """
        ...

    async def successors(self, *, user_id: str, fact_id: str) -> list[Fact]:
        """Return the facts that name `fact_id` in `replaces`, oldest first."""
        ...

    async def owed(self, *, user_id: str, limit: int) -> list[Fact]:
        """Return facts of the user whose latest revision is not in the index yet, in any order."""
        ...

    async def owed_users(self, *, limit: int) -> list[str]:
        """Return users (the global one too) for whom `owed` returns facts."""
        ...

    async def mark_indexed(self, fact: Fact) -> bool:
        """Record that the index holds this revision; return False, and change nothing, if the stored one is another."""
        ...

    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[Fact]]:
        """Yield the facts that must have a point: `is_open` and `indexed`.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    async def count_indexed(self) -> int:
        """Count the facts that `indexed` yields for all users."""
        ...

    def every(self, user_id: str) -> AsyncIterator[Sequence[Fact]]:
        """Yield all of the user's facts in whatever state, in batches of at most 500, by id, ascending."""
        ...

    async def aged(self, *, before: datetime, limit: int) -> list[Fact]:
        """Return facts of any user whose `confirmed_at` is before `before`, in whatever state.

        Pinned and forgotten ones are left out.
        """
        ...

    async def count_open(self, scope: Scope) -> int:
        """Count the open facts (`Fact.is_open`) of the thread; without a thread, of the user in all scopes."""
        ...

    async def has_notes(self, scope: Scope) -> bool:
        """Tell whether the user has an open fact without a key, in any scope."""
        ...

    async def weakest(self, scope: Scope, *, limit: int) -> list[Fact]:
        """Return the open, unpinned facts of `scope` (as `count_open` reads it), the first to go first.

        The order is by importance, ascending, then by `confirmed_at`, oldest first.
        """
        ...

    async def remove(self, *, user_id: str, fact_ids: Sequence[str]) -> int:
        """Delete these facts (at most 500) of the user; return how many were deleted."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's own facts (scope "thread"), or all of the user's; return how many were deleted."""
        ...


class Threads(Protocol):
    """Thread records: one per thread, written whole; each write names the revision that was read."""

    async def record(self, scope: Scope) -> ThreadRecord | None:
        """Return the thread's record, or None."""
        ...

    async def records(self, *, user_id: str, thread_ids: Sequence[str]) -> list[ThreadRecord]:
        """Return the records of those of `thread_ids` (at most 500) that have one, in any order."""
        ...

    async def put(self, record: ThreadRecord, *, revision: int) -> bool:
        """Store `record` in place of the one with `revision` (0: none is stored yet).

        Else return False, and change nothing.
        """
        ...

    async def closing(self, *, limit: int) -> list[ThreadRecord]:
        """Return records of any user with `closing` set: their archive lacks its summary."""
        ...

    async def owed(self, *, user_id: str, limit: int) -> list[ThreadRecord]:
        """Return records of the user whose latest revision is not in the index yet."""
        ...

    async def owed_users(self, *, limit: int) -> list[str]:
        """Return users for whom `owed` returns records."""
        ...

    async def mark_indexed(self, record: ThreadRecord) -> bool:
        """Record that the index holds this revision; return False, and change nothing, if the stored one is another."""
        ...

    def indexed(self, *, user_id: str | None = None) -> AsyncIterator[Sequence[ThreadRecord]]:
        """Yield the records that must have a point: `has_point` and `indexed`.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    async def count_indexed(self) -> int:
        """Count the records that `indexed` yields for all users."""
        ...

    def every(self, user_id: str) -> AsyncIterator[Sequence[ThreadRecord]]:
        """Yield all of the user's records, in batches of at most 500, by thread id, ascending."""
        ...

    async def delete(self, scope: Scope) -> int:
        """Delete the thread's record (or all of the user's); return how many were deleted."""
        ...


class ThreadQueue(Protocol):
    """A queue for each thread: its turns run one at a time, in order of arrival, across all processes on one store."""

    def turn(self, scope: Scope, *, wait_seconds: float) -> AbstractAsyncContextManager[None]:
        """Wait for the turns ahead, then hold the thread for one turn, until the context ends.

        Raises:
            ThreadBusy: the thread did not come free within `wait_seconds`.
        """
        ...


class Store(Protocol):
    """One backend. Its `open_…` context manager opens and closes it."""

    @property
    def name(self) -> str:
        """The name that `/health` shows: "sqlite" or "mongodb"."""
        ...

    @property
    def conversations(self) -> Conversations:
        """Messages and turns."""
        ...

    @property
    def timeline(self) -> Timeline:
        """Messages by time and by position."""
        ...

    @property
    def imports(self) -> Imports:
        """Turns that are imported in bulk."""
        ...

    @property
    def facts(self) -> Facts:
        """Facts."""
        ...

    @property
    def updates(self) -> Updates:
        """Pending updates and their claims."""
        ...

    @property
    def threads(self) -> Threads:
        """Thread records."""
        ...

    @property
    def documents(self) -> Documents:
        """Documents with their passages, and what threads have attached."""
        ...

    @property
    def counts(self) -> Counts:
        """Counts of users, threads, turns, messages and facts."""
        ...

    @property
    def queue(self) -> ThreadQueue:
        """The queues of the threads."""
        ...

    @property
    def keys(self) -> Keys:
        """API keys."""
        ...

    @property
    def erasures(self) -> Erasures:
        """Tombstones and receipts of erasures."""
        ...

    def users(self) -> AsyncIterator[Sequence[str]]:
        """Yield the id of every user who has a message, fact, thread record or document, the global one too.

        They come in batches, ascending.
        """
        ...

    async def ping(self) -> None:
        """Ask the backend whether it can serve.

        Raises:
            StoreUnavailable: it cannot.
        """
        ...
