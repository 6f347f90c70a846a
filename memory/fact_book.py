"""What a person can do with facts: list, write, change, approve, reject and forget them, and see their history.

Each verb is scoped to a user; global facts are those of `GLOBAL_USER`. What a person wrote or pinned no model changes.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

from memory.documents import Documents, FactFilter
from memory.errors import FactConflict, NotFound
from memory.fact import Fact, fact_dict, preferred
from memory.fact_edit import FactEdit, check_key, edited, home_of, written
from memory.fact_history import in_force_at, tombstone, versions
from memory.fact_rivals import home_scope, living_under, rivals_of, superseded
from memory.fact_writes import revise
from memory.fences import Fences
from memory.forgetting import Forgetting, family_of
from memory.owed_points import OwedPoints
from memory.recall import MOST_FACTS
from memory.reviewing import approve, reject
from memory.scope import Scope
from memory.times import Clock
from memory.turn import derived_id
from memory.updater import Updater

_TRIES = 20
"""How often a write that lost a race begins again."""
_NUMBERS = 50


@dataclass(frozen=True, slots=True)
class FactPage:
    """A page of facts, the whole dict of the user, and whether there are more behind them."""

    items: Sequence[Fact]
    facts: Mapping[str, str]
    has_more: bool


class Keeper(Protocol):
    """What keeps users and threads within their bounds."""

    def touch(self, user_id: str) -> None:
        """Something of this user's was added."""
        ...

    async def trim_thread(self, scope: Scope) -> None:
        """Keep the thread's working memory within its bound."""
        ...


@dataclass(frozen=True, slots=True)
class FactBook:
    """The facts of users, as people handle them. A call waits up to `wait_seconds` for what a turn is just learning.

    Raises:
        InvalidRequest: from any call; names each field that is wrong.
        NotFound: there is no such fact, or it is another user's.
        FactConflict: it is not in a state for this, or other writes kept coming in between.
        UserErased: from calls that make a fact, while its user is being erased.
        StoreUnavailable: from any call; what was begun is completed by the same call again.
    """

    documents: Documents
    points: OwedPoints
    updater: Updater
    clock: Clock
    wait_seconds: float = 30.0
    bounds: Keeper | None = None
    fences: Fences | None = None

    async def page(self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None) -> FactPage:
        """Facts that the filter shows, oldest first, from behind the one with id `after`.

        The dict is of all that hold for the user (and the filter's thread) now, or at its `as_of`, on every page.
        """
        facts = self.documents.facts
        found = await facts.page(user_id, shown, limit=limit + 1, after=after)
        holding = FactFilter(now=shown.now, thread_id=shown.thread_id, as_of=shown.as_of)
        known = await facts.page(user_id, holding, limit=MOST_FACTS)
        return FactPage(
            items=_as_of(found[:limit], shown.as_of),
            facts=fact_dict(_as_of(known, shown.as_of)),
            has_more=len(found) > limit,
        )

    async def fact(self, user_id: str, fact_id: str) -> Fact:
        """One fact, in whatever state; of a forgotten one nothing but its tombstone."""
        fact = await self.documents.facts.fact(user_id=user_id, fact_id=fact_id)
        if fact is None:
            raise NotFound("There is no such fact of this user.")
        return _without_text(fact)

    async def history(self, user_id: str, fact_id: str) -> list[dict[str, Any]]:
        """All versions of what the fact says, oldest first, each with what ended it: superseded and later facts too."""
        await self.fact(user_id, fact_id)
        family = await family_of(self.documents.facts, user_id, fact_id)
        family.sort(key=lambda fact: (fact.created_at, fact.id))
        return [version for fact in family for version in versions(_without_text(fact))]

    async def put(self, user_id: str, key: str, edit: FactEdit) -> Fact:
        """Write the fact under a key, in the user's own scope or a thread's.

        The fact that holds there is changed and keeps its id; where none does, or the new value is to hold later only,
        a new one is made, and two calls at the same time make one. Whatever else it contradicts ends.
        """
        check_key(key)
        for _ in range(_TRIES):
            now = self.clock()
            start = max(now, edit.get("valid_from") or now)
            scope, home = home_of(user_id, edit)
            here = await living_under(self.documents.facts, key, scope, home, at=now)
            known = preferred(fact for fact in here if _is_meant(fact, start, now))
            if known is None:
                fact = await self._insert(written(user_id, key, edit, now=now), home, start)
            else:
                fact = await self._store(known, edited(known, edit, now=now))
            if fact is not None:
                await self._end_rivals(fact, here, now)
                await self._settle(fact)
                return fact
        raise FactConflict

    async def notes(self, user_id: str, *, tag: str | None = None, limit: int, after: str | None = None) -> list[Fact]:
        """The user's own facts without a key that hold now, newest first, from behind the one with id `after`."""
        return await self.documents.facts.notes(user_id, at=self.clock(), tag=tag, limit=limit, after=after)

    async def note(self, user_id: str, fact_id: str) -> Fact:
        """One fact without a key, whatever has become of it.

        Raises:
            NotFound: also where it has a key, or was forgotten.
        """
        fact = await self.documents.facts.fact(user_id=user_id, fact_id=fact_id)
        if fact is None or fact.key is not None or fact.status == "forgotten":
            raise _no_such_note()
        return fact

    async def forget_note(self, user_id: str, fact_id: str) -> None:
        """Forget a fact without a key; see `forget`, whose failures leave what the same call completes.

        Raises:
            NotFound: there is none, or it is forgotten already.
        """
        fact = await self.documents.facts.fact(user_id=user_id, fact_id=fact_id)
        if fact is None or fact.key is not None:
            raise _no_such_note()
        await self.forget(user_id, fact_id)
        if fact.status == "forgotten":
            raise _no_such_note()

    async def write_note(self, user_id: str, edit: FactEdit) -> Fact:
        """Write a new fact without a key; `statement` is its text. No model changes it."""
        fact = replace(written(user_id, None, edit, now=self.clock()), id=str(uuid4()))
        async with self._writing(fact):
            await self.documents.facts.insert(fact)
        await self._settle(fact)
        return fact

    async def patch(self, user_id: str, fact_id: str, edit: FactEdit) -> Fact:
        """Change the fields that the edit gives. New texts make it a fact that a person wrote; pinning alone does not.

        Raises:
            FactConflict: also where the fact has ended, or another fact lives under its key where it would live.
        """
        for _ in range(_TRIES):
            now = self.clock()
            fact = await self.documents.facts.fact(user_id=user_id, fact_id=fact_id)
            if fact is None:
                raise NotFound("There is no such fact of this user.")
            if not fact.is_open:
                raise FactConflict(f"The fact is {fact.shown_status}; only what is known can be changed.")
            changed = edited(fact, edit, now=now)
            if changed is not None and _place(changed) != _place(fact):
                await self._check_free(changed, now)
            stored = await self._store(fact, changed)
            if stored is not None:
                await self._settle(stored)
                return stored
        raise FactConflict

    async def forget(self, user_id: str, fact_id: str) -> None:
        """Remove the fact's text everywhere: from all versions of what it says, the index, and what turns keep of it.

        A tombstone without text stays. The messages of the conversation and its summary stay too: they are the
        thread's. Called again after a failure, it completes what is left.

        Raises:
            UpdatePending: it is forgotten, but a turn that is still being learned from holds some of its text.
        """
        forgetting = Forgetting(self.documents, self.points, self.updater, self.clock, self.wait_seconds)
        await forgetting.forget(user_id, fact_id)

    async def approve(self, user_id: str, fact_id: str) -> Fact:
        """Let a proposed fact hold; it ends what it replaces, and what lives under its key by now."""
        fact = await approve(self.documents.facts, user_id, fact_id, now=self.clock())
        await self.points.sync_soon(user_id)
        return fact

    async def reject(self, user_id: str, fact_id: str) -> Fact:
        """Refuse a proposed fact; it stays in the history."""
        return await reject(self.documents.facts, user_id, fact_id, now=self.clock())

    async def _settle(self, fact: Fact) -> None:
        """Keep what was written within its bounds, and let the index follow."""
        if self.bounds is not None:
            self.bounds.touch(fact.user_id)
            if fact.scope == "thread":
                await self.bounds.trim_thread(home_scope(fact))
        await self.points.sync_soon(fact.user_id)

    async def _insert(self, blank: Fact, home: Scope, start: datetime) -> Fact | None:
        """Insert under the first free id of the key; None where another call has just made the fact."""
        facts = self.documents.facts
        place = f"{blank.scope}/{home.thread_id or ''}/{blank.key}"
        for first in range(0, 100 * _NUMBERS, _NUMBERS):
            numbers = range(first, first + _NUMBERS)
            # A turn's id is never empty: no turn derives such an id.
            ids = [derived_id(blank.user_id, "", f"fact:{place}/{number}") for number in numbers]
            taken = {fact.id: fact for fact in await facts.facts(user_id=blank.user_id, fact_ids=ids)}
            if any(fact.key == blank.key and _is_meant(fact, start, blank.created_at) for fact in taken.values()):
                return None
            free = next((one for one in ids if one not in taken), None)
            if free is not None:
                fact = replace(blank, id=free)
                async with self._writing(fact):
                    return fact if await facts.insert(fact) else None
        raise FactConflict

    @asynccontextmanager
    async def _writing(self, fact: Fact) -> AsyncGenerator[None]:
        """Insert a new fact: where an erasure comes in between, nothing of it is left."""
        if self.fences is None:
            yield
            return
        async with self.fences.writing(fact.user_id, fact.home) as writing:
            writing.take_back(lambda: self.documents.facts.remove(user_id=fact.user_id, fact_ids=[fact.id]))
            yield

    async def _store(self, fact: Fact, changed: Fact | None) -> Fact | None:
        """The fact as it is stored then; None where it was changed at the same time."""
        if changed is None:
            return fact
        return changed if await self.documents.facts.replace(changed, revision=fact.revision) else None

    async def _end_rivals(self, fact: Fact, seen: Sequence[Fact], now: datetime) -> None:
        """End what else lived under the key before, and what a turn has put there meanwhile."""
        seen_ids = {other.id for other in seen}
        end = superseded(by="person", at=now, until=max(now, fact.valid_from))
        for other in await rivals_of(self.documents.facts, fact, at=now):
            if other.id in seen_ids or not other.is_guarded:
                await revise(self.documents.facts, user_id=other.user_id, fact_id=other.id, change=end)

    async def _check_free(self, fact: Fact, now: datetime) -> None:
        if fact.is_living(now) and await rivals_of(self.documents.facts, fact, at=now):
            raise FactConflict("Another fact lives under this key there; change that one, or forget it first.")


def _no_such_note() -> NotFound:
    return NotFound("There is no such memory of this user.")


def _is_meant(fact: Fact, start: datetime, now: datetime) -> bool:
    """Whether a fact under the key is the one that a write of what holds from `start` on means."""
    return fact.is_living(now) and fact.holds(start) and (start <= now or fact.valid_from == start)


def _place(fact: Fact) -> tuple[object, ...]:
    return fact.scope, fact.thread_id, fact.valid_from, fact.valid_to


def _as_of(facts: Sequence[Fact], at: datetime | None) -> list[Fact]:
    return list(facts) if at is None else [in_force_at(fact, at) for fact in facts]


def _without_text(fact: Fact) -> Fact:
    """The fact; while it is being forgotten, what it will be then."""
    return tombstone(fact, at=fact.updated_at) if fact.status == "forgotten" else fact
