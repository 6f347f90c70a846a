"""The facts port, part of the store."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime
from typing import Protocol

from recollect.memory.values.decision import FactScope
from recollect.memory.values.fact import Fact, FactSource, FactStatus
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope


@frozen
class FactFilter:
    """Which of a user's facts a list shows; a field that is None does not filter.

    Without `as_of` or `status`: facts that hold at `now`. `as_of`: facts that held then. `status` "proposed" or
    "rejected": facts of that status, whatever their validity. `scope` None: the user's own facts, and with `thread_id`
    that thread's too; "thread": facts of `thread_id`, or of all threads. `text`: facts that hold it in key, value or
    statement, in whatever case. `keyed`: facts with a key, or without one. `newest_first`: the order of the pages.
    """

    now: datetime
    scope: FactScope | None = None
    thread_id: str | None = None
    tag: str | None = None
    as_of: datetime | None = None
    status: FactStatus | None = None
    text: str | None = None
    source: FactSource | None = None
    keyed: bool | None = None
    newest_first: bool = False


class Facts(Protocol):
    """Facts: one record per id, written whole; each write names the revision that was read."""

    @abstractmethod
    async def insert(self, fact: Fact) -> bool:
        """Store a new fact; return False, and change nothing, if this user has a fact with its id."""
        ...

    @abstractmethod
    async def insert_all(self, facts: Sequence[Fact]) -> set[str]:
        """Store new facts (at most 500, of one user, with different ids) and return the ids of those that are new.

        The others stay as they are. The call is not atomic: after a kill, some of the facts are stored.
        """
        ...

    @abstractmethod
    async def replace(self, fact: Fact, *, revision: int) -> bool:
        """Store `fact` in place of the stored one with its id if that has `revision`.

        Else return False, and change nothing.
        """
        ...

    @abstractmethod
    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        """Return one fact in whatever state, or None."""
        ...

    @abstractmethod
    async def facts(self, *, user_id: str, fact_ids: Sequence[str]) -> list[Fact]:
        """Return those of `fact_ids` (at most 500) that exist, in any order."""
        ...

    @abstractmethod
    async def living(
        self,
        scope: Scope,
        *,
        at: datetime,
        limit: int,
        with_global: bool = False,
        keys: Collection[str] | None = None,
    ) -> list[Fact]:
        """Return active facts whose validity has not run out at `at`, newest first; with `keys` only those under them.

        A superseded fact counts while it holds. They are the user's own; with a thread in `scope` also that thread's;
        with `with_global` also the global ones.
        """
        ...

    @abstractmethod
    async def proposed(self, scope: Scope, *, limit: int) -> list[Fact]:
        """Return facts that wait for a person, newest first: the user's own, and with a thread also that thread's."""
        ...

    @abstractmethod
    async def known(self, scope: Scope, *, at: datetime, living: int, proposed: int) -> tuple[list[Fact], list[Fact]]:
        """Return what `living` returns with the global facts, and what `proposed` does, at most so many of each."""
        ...

    @abstractmethod
    async def page(self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None) -> list[Fact]:
        """Return the facts that `shown` selects, in its order, starting behind the fact with id `after`.

        That fact itself need not be selected any more; if it does not exist any more, the page is empty.
        """
        ...

    @abstractmethod
    async def notes(
        self, user_id: str, *, at: datetime, tag: str | None = None, limit: int, after: str | None = None
    ) -> list[Fact]:
        """Return the user's own notes that hold at `at`, newest first, starting behind the fact `after`.

        With `tag`, only facts that have it. Threads' working memory is left out. The fact `after` need not hold any
        more; if it does not exist any more, the page is empty.
        """
        ...

    @abstractmethod
    async def successors(self, *, user_id: str, fact_id: str) -> list[Fact]:
        """Return the facts that name `fact_id` in `replaces`, oldest first."""
        ...

    @abstractmethod
    async def owed(self, *, user_id: str, limit: int) -> list[Fact]:
        """Return facts of the user whose latest revision is not in the index yet, in any order."""
        ...

    @abstractmethod
    async def owed_users(self, *, limit: int) -> list[str]:
        """Return users (the global one too) for whom `owed` returns facts."""
        ...

    @abstractmethod
    async def mark_indexed(self, facts: Sequence[Fact]) -> set[str]:
        """Record that the index holds these revisions of a user's facts (at most 500), and return their ids.

        A fact that is stored at another revision is left as it is, and its id is left out.
        """
        ...

    @abstractmethod
    def indexed(self, *, user_id: str | None = None, where: Narrow = ALL) -> AsyncIterator[Sequence[Fact]]:
        """Yield the facts that must have a point: `is_open` and `indexed`.

        They come in batches of at most 500, in any order. Without `user_id`, yield those of all users.
        """
        ...

    @abstractmethod
    async def count_indexed(self) -> int:
        """Count the facts that `indexed` yields for all users."""
        ...

    @abstractmethod
    def every(self, user_id: str) -> AsyncIterator[Sequence[Fact]]:
        """Yield all of the user's facts in whatever state, in batches of at most 500, by id, ascending."""
        ...

    @abstractmethod
    async def aged(self, *, before: datetime, limit: int) -> list[Fact]:
        """Return facts of any user whose `confirmed_at` is before `before`, in whatever state, oldest such first.

        Pinned and forgotten ones are left out.
        """
        ...

    @abstractmethod
    async def count_open(self, scope: Scope) -> int:
        """Count the open facts (`Fact.is_open`) of the thread; without a thread, of the user in all scopes."""
        ...

    @abstractmethod
    async def has_notes(self, scope: Scope, *, besides: Sequence[str] = ()) -> bool:
        """Tell whether the user has an open note, in any scope, that none of the turns `besides` has taught."""
        ...

    @abstractmethod
    async def weakest(self, scope: Scope, *, limit: int) -> list[Fact]:
        """Return the open, unpinned facts of `scope` (as `count_open` reads it), the first to go first.

        The order is by importance, ascending, then by `confirmed_at`, oldest first.
        """
        ...

    @abstractmethod
    async def remove(self, *, user_id: str, fact_ids: Sequence[str]) -> int:
        """Delete these facts (at most 500) of the user; return how many were deleted."""
        ...

    @abstractmethod
    async def delete(self, scope: Scope) -> int:
        """Delete the thread's own facts (scope "thread"), or all of the user's; return how many were deleted."""
        ...
