"""Forgetting: removes a fact's text from every place that keeps it, and leaves a tombstone without text.

First every version of the fact is marked forgotten, so that recall skips it at once. Then its text is removed from the
index and from what turns keep of it, and last from the facts themselves: they are needed to find it elsewhere. After a
kill in between the same call completes what is left. The messages of the conversation and its summary stay.
"""

import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from recollect.memory.facts.fact_history import tombstone, versions
from recollect.memory.facts.fact_writes import revise
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.ports.facts import Facts
from recollect.memory.ports.store import Store
from recollect.memory.updates.updater import Updater
from recollect.memory.values import tool_use
from recollect.memory.values.decision import Change, Proposal, RefusedProposal
from recollect.memory.values.errors import FactConflict, NotFound, UpdatePending
from recollect.memory.values.fact import Ended, Fact, fold
from recollect.memory.values.frozen import frozen
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.preview import Preview
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Update

logger = logging.getLogger(__name__)

FORGOTTEN = "forgotten"
MOST_EXAMINED = 500
"""How many turns a preview looks through, so that it answers within a tenth of a second."""
_TRIES = 5
_PENDING = 1_000


async def family_of(facts: Facts, user_id: str, fact_id: str) -> list[Fact]:
    """Return the fact with all facts that it replaced and that replaced it, directly or through others."""
    found: dict[str, Fact] = {}
    to_read = [fact_id]
    while to_read:
        wanted = to_read.pop()
        if wanted in found:
            continue
        fact = await facts.fact(user_id=user_id, fact_id=wanted)
        if fact is None:
            continue
        found[wanted] = fact
        to_read += [fact.replaces] if fact.replaces is not None else []
        to_read += [later.id for later in await facts.successors(user_id=user_id, fact_id=wanted)]
    return list(found.values())


@frozen
class ForgottenTraces:
    """Recognises traces of facts in a turn's record: by their ids, and by the texts that they had under their keys."""

    ids: frozenset[str]
    said: frozenset[tuple[str | None, str]]

    @classmethod
    def of(cls, facts: Sequence[Fact]) -> "ForgottenTraces":
        """Collect the traces of `facts` and their earlier versions. A tombstone has its id alone."""
        said: set[tuple[str | None, str]] = set()
        for fact in facts:
            told = [(fact.value, fact.statement), *((one["value"], one["statement"]) for one in fact.history)]
            said |= {(fact.key, fold(text)) for texts in told for text in texts if text}
        return cls(frozenset(fact.id for fact in facts), frozenset(said))

    def has(self, key: str | None, text: str | None) -> bool:
        """Tell whether one of the facts had this `text` under `key`."""
        return text is not None and (key, fold(text)) in self.said

    def without(self, turn: Turn) -> Turn:
        """Return the turn without traces of the facts in its update and result; an equal turn if it has none."""
        update = None if turn.update is None else self._without_update(turn.update)
        result = None if turn.result is None else self._without_result(turn.result)
        # Most turns of a long history have none, and are read by the thousand: those are not built anew.
        if update is turn.update and result is turn.result:
            return turn
        return replace(turn, update=update, result=result)

    def _without_update(self, update: Update) -> Update:
        if update.is_bare:
            return update
        undo, earlier = update.undo, update.earlier
        return replace(
            update,
            changes=self._without_changes(update.changes),
            writes=self._without_writes(update.writes),
            earlier=None if earlier is None else replace(earlier, writes=self._without_writes(earlier.writes)),
            refused=tuple(_blank_refused(one) if self._is_refused(one) else one for one in update.refused),
            proposals=tuple(one for one in update.proposals if not self._is_proposed(one)),
            preview=update.voided if self._is_previewed(update.preview) else update.preview,
            undo=None
            if undo is None
            else replace(
                undo,
                changes=self._without_changes(undo.changes),
                left=tuple(replace(one, key=None) if one.fact_id in self.ids else one for one in undo.left),
            ),
        )

    def _without_writes(self, writes: Sequence[PlannedWrite]) -> tuple[PlannedWrite, ...]:
        return tuple(_blank_write(one) if one.inserts in self.ids else one for one in writes)

    def _without_changes(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        return tuple(_blank_change(one) if one.fact_id in self.ids else one for one in changes)

    def _is_refused(self, refused: RefusedProposal) -> bool:
        return refused.fact_id in self.ids or self.has(refused.key, refused.value)

    def _is_proposed(self, proposal: Proposal) -> bool:
        return any(self.has(proposal.key, text) for text in (proposal.value, proposal.statement))

    def _is_previewed(self, preview: Preview | None) -> bool:
        """Tell whether the preview holds an id or text of the facts anywhere, whatever the key."""
        if preview is None:
            return False
        texts = {text for _, text in self.said}
        return any(text in self.ids or fold(text) in texts for text in _texts(asdict(preview)))

    def _without_result(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        result = tool_use.uses_without(result, self._is_used)
        memory: Mapping[str, Any] = result.get("memory", {})
        facts: Mapping[str, str] = memory.get("facts", {})
        hits: Sequence[Mapping[str, Any]] = memory.get("hits", ())
        kept = {key: value for key, value in facts.items() if not self.has(key, value)}
        blanked = [{**hit, "content": ""} if hit["kind"] == "fact" and hit["id"] in self.ids else hit for hit in hits]
        if len(kept) == len(facts) and blanked == list(hits):
            return result
        return {**result, "memory": {**memory, "facts": kept, "hits": blanked}}

    def _is_used(self, use: Mapping[str, Any]) -> bool:
        """Tell whether a use of a tool found one of the facts, or says a text of theirs, whatever the key.

        A tool's answer is foreign text without ids: words that only happen to be the fact's cost the use its texts.
        """
        if any(source.get("id") in self.ids for source in use.get("found") or ()):
            return True
        said = [f" {fold(text)} " for text in (*_texts(use["args"]), *_texts(_read(use["content"])), use["content"])]
        return any(f" {text} " in each for _, text in self.said if text for each in said)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value's mappings and sequences."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, tuple | list):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner)


def _read(content: str) -> object:
    """Return the JSON that the text is; None where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _blank_change(change: Change) -> Change:
    return replace(change, key=None, before=None, after=None, evidence="", reason=FORGOTTEN)


def _blank_refused(refused: RefusedProposal) -> RefusedProposal:
    return replace(refused, key=None, value=None, evidence="", reason=FORGOTTEN)


def _blank_write(write: PlannedWrite) -> PlannedWrite:
    return replace(write, key=None, value="", statement="", evidence="", tags=())


@frozen
class ForgettingPreview:
    """Holds what forgetting a fact removes: all its versions, oldest first, and traces in the records of `turns` turns.

    `is_all` is false where there are `MOST_EXAMINED` turns (and users) or more: then there are so many, or more.
    """

    versions: tuple[Mapping[str, Any], ...]
    turns: int
    is_all: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"versions": [dict(version) for version in self.versions], "turns": self.turns, "is_all": self.is_all}


@frozen
class Forgetting:
    """Forgets facts in the store and the index."""

    store: Store
    points: IndexOutbox
    updater: Updater
    clock: Clock
    wait_seconds: float

    async def preview(self, user_id: str, fact_id: str) -> ForgettingPreview:
        """Return what forgetting the fact would remove now; it writes nothing and waits for nobody."""
        if await self.store.facts.fact(user_id=user_id, fact_id=fact_id) is None:
            raise NotFound("There is no such fact of this user.")
        family = await family_of(self.store.facts, user_id, fact_id)
        family.sort(key=lambda fact: (fact.created_at, fact.id))
        traces = ForgottenTraces.of(family)
        found, is_all = await self._count(user_id, traces)
        told = [version for fact in family if fact.status != FORGOTTEN for version in versions(fact)]
        return ForgettingPreview(tuple(told), found, is_all)

    async def forget(self, user_id: str, fact_id: str) -> None:
        """Forget the fact; see `FactService.forget`."""
        if await self.store.facts.fact(user_id=user_id, fact_id=fact_id) is None:
            raise NotFound("There is no such fact of this user.")
        # First, because a pending update may write the text again, and its record cannot be cleaned.
        await self._settle(user_id)
        family = await family_of(self.store.facts, user_id, fact_id)
        for fact in family:
            await revise(self.store.facts, user_id=user_id, fact_id=fact.id, change=self._marked)
        await self.points.sync_soon(user_id)
        traces = ForgottenTraces.of(family)
        late = 0
        async for holder in self._holders(user_id):
            late += await self._clean(holder, traces)
        for fact in family:
            await revise(self.store.facts, user_id=user_id, fact_id=fact.id, change=self._blanked)
        await self.points.sync_soon(user_id)
        logger.info("fact forgotten", extra={"action": "fact_forgotten", "versions": len(family), "late": late})
        if late:
            raise UpdatePending(
                "The fact is forgotten, but a turn that is still being learned from holds some of its text; "
                "forget it again when that has ended."
            )

    async def _count(self, user_id: str, traces: ForgottenTraces) -> tuple[int, bool]:
        """Return how many turns hold traces, and whether all turns were examined: reading them takes its time."""
        found = examined = 0
        async for holder in self._holders(user_id):
            examined += 1  # a global fact is looked for at every user, also at those without turns
            async for turns in self.store.conversations.turns(holder):
                found += sum(traces.without(turn) != turn for turn in turns)
                examined += len(turns)
                if examined > MOST_EXAMINED:
                    return found, False
            if examined > MOST_EXAMINED:
                return found, False
        return found, True

    def _marked(self, fact: Fact) -> Fact | None:
        if fact.status == FORGOTTEN:
            return None
        now = self.clock()
        return fact.revised(at=now, status=FORGOTTEN, ended=Ended("person", now, reason=FORGOTTEN))

    def _blanked(self, fact: Fact) -> Fact:
        # Written even if nothing changes: with this write the store removes the earlier bytes from its disk.
        return tombstone(fact, at=fact.updated_at)

    async def _settle(self, user_id: str) -> None:
        """Wait up to `wait_seconds` until the user's pending updates have ended."""
        pending = await self.store.updates.pending(user_id, limit=_PENDING)
        await self.updater.wait_all_ended(pending, seconds=self.wait_seconds)

    async def _holders(self, user_id: str) -> AsyncIterator[str]:
        """Yield the users whose turns may have recalled the fact: all users if it is global."""
        if user_id != GLOBAL_USER:
            yield user_id
            return
        async for users in self.store.users():
            for each in users:
                if each != GLOBAL_USER:
                    yield each

    async def _clean(self, user_id: str, traces: ForgottenTraces) -> int:
        """Clean the user's turns; return how many could not be, because their updates are pending."""
        late = 0
        async for turns in self.store.conversations.turns(user_id):
            for turn in turns:
                late += not await self._clean_turn(turn, traces)
        return late

    async def _clean_turn(self, turn: Turn, traces: ForgottenTraces) -> bool:
        conversations = self.store.conversations
        message = turn.message
        for _ in range(_TRIES):
            clean = traces.without(turn)
            if clean == turn or clean.update is None or clean.result is None or turn.update is None:
                return True
            # A worker may be running a pending update, so only the turn's result may change meanwhile.
            is_late = turn.update.status == "pending" and clean.update != turn.update
            update = turn.update if is_late else clean.update
            if await conversations.rewrite(turn, result=clean.result, update=update):
                return not is_late
            stored = await conversations.turn(user_id=message.user_id, turn_id=message.turn_id)
            if stored is None:
                return True
            turn = stored
        raise FactConflict("The turns that recalled the fact keep changing; forget it again.")
