"""Fact service: writes, changes, approves, rejects and forgets facts for people, beside reading them.

Each verb is scoped to a user; global facts are those of `GLOBAL_USER`. No model changes what a person wrote or pinned.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast
from uuid import uuid4

from recollect.memory.erasure.fences import Fences
from recollect.memory.facts.fact_edit import FactEdit, check_key, edited, home_of, written
from recollect.memory.facts.fact_reading import FactReading, no_such_note, without_text
from recollect.memory.facts.fact_rivals import home_scope, living_under, rivals_of, superseded
from recollect.memory.facts.fact_writes import revise
from recollect.memory.facts.forgetting import Forgetting, ForgettingPreview
from recollect.memory.facts.known_statement import confirm, is_before, known_statement
from recollect.memory.facts.reviewing import approve, proposal_version, reject
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.updates.retention import Retention
from recollect.memory.updates.updater import Updater
from recollect.memory.values.errors import FactConflict, NotFound
from recollect.memory.values.fact import Fact, preferred
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import derived_id
from recollect.memory.values.version import check_version

_TRIES = 20
"""A write that lost a race is tried at most this often."""
_NUMBERS = 50


class Noted(NamedTuple):
    """Holds a memory that was written: the new fact, or the fact that was `known` already."""

    fact: Fact
    known: bool


@frozen
class FactService(FactReading):
    """Handles facts for people. A call waits up to `wait_seconds` for updates that are being learned from.

    Raises:
        InvalidRequest: from any call; names each field that is wrong.
        NotFound: the user has no such fact.
        FactConflict: the state of the fact does not allow the call, or it lost too many races with other writes.
        UserErased: from calls that make a fact, while its user is being erased.
        StoreUnavailable: from any call; the same call again completes what was begun.
    """

    points: IndexOutbox
    updater: Updater
    wait_seconds: float
    retention: Retention
    fences: Fences

    async def put(
        self, user_id: str, key: str, edit: FactEdit, *, version: str | None = None, agent_id: str | None = None
    ) -> Fact:
        """Write the fact under a key, in the user's own scope or a thread's.

        With `version`, only if the fact that holds there has it. `agent_id`: the caller sees what has this agent's
        label alone, and must not end what it does not see: then another label under the key is a `FactConflict`.

        Change the fact that holds there and keep its id. If none does, or the new value holds later only, make a new
        one; two calls at the same time make one fact. End the other facts under the key that it contradicts.
        """
        check_key(key)
        for _ in range(_TRIES):
            now = self.clock()
            home = home_of(user_id, edit)[1]
            here, known = await self._under(user_id, key, edit, now)
            if any(agent_id not in (None, fact.agent_id) for fact in here):
                raise FactConflict(f"A fact under the key {key} is not of this key's agent; choose another key.")
            check_version(version, known.version if known is not None else "")
            if known is None:
                fact = await self._insert(written(user_id, key, edit, now=now), home, _start(edit, now))
            else:
                fact = await self._store(known, edited(known, edit, now=now))
            if fact is not None:
                # Ended after the write: a kill in between leaves two facts, and the same call again ends the other.
                await self._end_rivals(fact, here, now)
                await self._settle(fact)
                return fact
        raise FactConflict

    async def under(self, user_id: str, key: str, edit: FactEdit) -> Fact | None:
        """Return the fact that `put` with this edit would change; None where it would make one."""
        return (await self._under(user_id, check_key(key), edit, self.clock()))[1]

    async def _under(self, user_id: str, key: str, edit: FactEdit, now: datetime) -> tuple[Sequence[Fact], Fact | None]:
        """Return the facts that live under the key where the edit puts it, and the one among them that it means."""
        start = _start(edit, now)
        here = await living_under(self.store.facts, key, *home_of(user_id, edit), at=now)
        return here, preferred(fact for fact in here if _is_meant(fact, start, now))

    async def forget_note(self, user_id: str, fact_id: str) -> None:
        """Forget a note; see `forget`. After a failure the same call completes it.

        Raises:
            NotFound: the user has no such fact, or it is forgotten already.
        """
        fact = await self.store.facts.fact(user_id=user_id, fact_id=fact_id)
        if fact is None or fact.key is not None:
            raise no_such_note()
        await self.forget(user_id, fact_id)
        if fact.status == "forgotten":
            raise no_such_note()

    async def write_note(self, user_id: str, edit: FactEdit, *, agent_id: str | None = None) -> Noted:
        """Write a new note; `statement` is its text. No model changes it.

        If a fact with any key says the same already, word for word after folding, confirm that one instead and give
        it the edit's other fields. `agent_id`: if a fact with the label of this agent does.
        """
        fact = replace(written(user_id, None, edit, now=self.clock()), id=str(uuid4()))
        facts = self.store.facts
        look = partial(known_statement, facts, home_scope(fact), fact.statement, clock=self.clock)

        def is_seen(other: Fact) -> bool:
            return agent_id in (None, other.agent_id)

        known = await look(among=is_seen)
        if known is None:
            async with self._writing(fact):
                await facts.insert(fact)
            # Two calls at the same time both look again after their inserts, and the later fact is removed.
            known = await look(among=lambda other: is_seen(other) and is_before(other, fact))
            if known is not None:
                await facts.remove(user_id=user_id, fact_ids=[fact.id])
        if known is not None:
            return Noted(await self._confirm(known, edit), known=True)
        await self._settle(fact)
        return Noted(fact, known=False)

    async def _confirm(self, known: Fact, edit: FactEdit) -> Fact:
        """Confirm the known fact, and give it the edit's fields other than text and place."""
        others = {name: value for name, value in edit.items() if name not in {"statement", "scope", "thread_id"}}
        confirmed = await confirm(self.store.facts, known, clock=self.clock)
        return await self.patch(known.user_id, known.id, cast("FactEdit", others)) if others else confirmed

    async def patch(self, user_id: str, fact_id: str, edit: FactEdit, *, version: str | None = None) -> Fact:
        """Change the fields that the edit gives. New texts make it a fact that a person wrote; pinning alone does not.

        `version` is the one that the editor was shown (`Fact.version`); None: any.

        Raises:
            VersionChanged: the fact has another version by now; nothing is stored.
            FactConflict: also if the fact has ended, or another fact lives under its key at its new place.
        """
        for _ in range(_TRIES):
            now = self.clock()
            fact = await self.store.facts.fact(user_id=user_id, fact_id=fact_id)
            if fact is None:
                raise NotFound("There is no such fact of this user.")
            check_version(version, fact.version)
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
        """Remove the fact's text from all its versions, the index, and what turns keep of it.

        Keep a tombstone without text, and the messages and summary of the conversation, which are the thread's. After
        a failure the same call completes what is left.

        Raises:
            UpdatePending: the fact is forgotten, but a turn that is still being learned from holds some of its text.
        """
        await self._forgetting().forget(user_id, fact_id)

    async def forgetting_preview(self, user_id: str, fact_id: str) -> ForgettingPreview:
        """Return every version that `forget` would remove, and in how many turns' records it has traces."""
        return await self._forgetting().preview(user_id, fact_id)

    def _forgetting(self) -> Forgetting:
        return Forgetting(self.store, self.points, self.updater, self.clock, self.wait_seconds)

    async def approve(self, user_id: str, fact_id: str, *, version: str | None = None) -> Fact:
        """Let a proposed fact hold; end what it replaces, and what lives under its key by now.

        `version` is the one that the reviewer was shown (`proposal_version`); None: any.

        Raises:
            VersionChanged: the proposal, or what it replaces, has another version by now; nothing is decided.
        """
        await self._check_shown(user_id, fact_id, version)
        fact = await approve(self.store.facts, user_id, fact_id, now=self.clock())
        await self.points.sync_soon(user_id)
        return fact

    async def reject(self, user_id: str, fact_id: str, *, version: str | None = None) -> Fact:
        """Refuse a proposed fact; it stays in the history. `version` is as in `approve`."""
        await self._check_shown(user_id, fact_id, version)
        return await reject(self.store.facts, user_id, fact_id, now=self.clock())

    async def _check_shown(self, user_id: str, fact_id: str, version: str | None) -> None:
        """Check that a proposal has the version; one that is decided already is for the decision itself to refuse."""
        fact = await self.fact(user_id, fact_id)
        if version is None or fact.status != "proposed":
            return
        target = await self.store.facts.fact(user_id=user_id, fact_id=fact.replaces) if fact.replaces else None
        check_version(version, proposal_version(fact, None if target is None else without_text(target)))

    async def _settle(self, fact: Fact) -> None:
        """Enforce the limits after a write of `fact`, and synchronise the index."""
        self.retention.touch(fact.user_id)
        if fact.scope == "thread":
            await self.retention.trim_thread(home_scope(fact))
        await self.points.sync_soon(fact.user_id)

    async def _insert(self, blank: Fact, home: Scope, start: datetime) -> Fact | None:
        """Insert the fact under the first free id of its key; return None if another call has just made it."""
        facts = self.store.facts
        place = f"{blank.scope}/{home.thread_id or ''}/{blank.key}"
        for first in range(0, 100 * _NUMBERS, _NUMBERS):
            numbers = range(first, first + _NUMBERS)
            # Ids are derived, so that two calls at the same time insert under one id. No turn derives the same id,
            # because a turn's id is never empty.
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
        """Guard the insert of a new fact: remove it again if an erasure comes in between."""
        async with self.fences.writing(fact.user_id, fact.home) as writing:
            writing.on_erased(lambda: self.store.facts.remove(user_id=fact.user_id, fact_ids=[fact.id]))
            yield

    async def _store(self, fact: Fact, changed: Fact | None) -> Fact | None:
        """Store the `changed` fact if there is one, and return what is stored; None if another write came first."""
        if changed is None:
            return fact
        return changed if await self.store.facts.replace(changed, revision=fact.revision) else None

    async def _end_rivals(self, fact: Fact, seen: Sequence[Fact], now: datetime) -> None:
        """End the other facts that lived under the key before, and those that a turn has put there meanwhile."""
        seen_ids = {other.id for other in seen}
        end = superseded(by="person", at=now, until=max(now, fact.valid_from))
        for other in await rivals_of(self.store.facts, fact, at=now):
            if other.id in seen_ids or not other.is_guarded:
                await revise(self.store.facts, user_id=other.user_id, fact_id=other.id, change=end)

    async def _check_free(self, fact: Fact, now: datetime) -> None:
        if fact.is_living(now) and await rivals_of(self.store.facts, fact, at=now):
            raise FactConflict("Another fact lives under this key there; change that one, or forget it first.")


def _start(edit: FactEdit, now: datetime) -> datetime:
    """Return from when on the edited fact holds, now at the earliest."""
    return max(now, edit.get("valid_from") or now)


def _is_meant(fact: Fact, start: datetime, now: datetime) -> bool:
    """Tell whether a write that holds from `start` on means this fact under its key."""
    return fact.is_living(now) and fact.holds(start) and (start <= now or fact.valid_from == start)


def _place(fact: Fact) -> tuple[object, ...]:
    return fact.scope, fact.thread_id, fact.valid_from, fact.valid_to
