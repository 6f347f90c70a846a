"""Undo: takes back what a turn taught, and restores what it superseded, deleted or confirmed.

`undo_plan` is pure and decides; `undo_turn` does it, in the user's queue of updates. A replay after a kill recognises
the writes that were done before it, and has the same result.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.memory.background.batches import batches
from recollect.memory.facts.fact_history import was_changed_by_person, with_version
from recollect.memory.facts.fact_rivals import is_rival
from recollect.memory.facts.fact_writes import revise
from recollect.memory.ports.facts import Facts
from recollect.memory.values.decision import Change
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.times import from_ms, iso
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Left, Undo, Update

_CHANGED = "a person has changed it"
_BATCH = 500


@frozen
class TakenBack:
    """Holds one change that is taken back: the fact to undo, the fact to restore, and the change that the user sees."""

    change: Change
    undone: Fact | None = None
    restored: Fact | None = None


@frozen
class UndoPlan:
    """Lists what an undo takes back, in order, what it leaves because it has changed since, and the confirmations."""

    steps: tuple[TakenBack, ...] = ()
    left: tuple[Left, ...] = ()
    unconfirmed: tuple[PlannedWrite, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Tell whether the turn taught nothing that could be taken back."""
        return not (self.steps or self.left or self.unconfirmed)


@frozen
class UndoTask:
    """Holds the inputs of a plan: the turn's writes, the facts that they touched (by id), and the living facts.

    `at` is the time at which the undo was requested; it marks what this undo has restored already. None: not requested.
    """

    turn_id: str
    writes: Sequence[PlannedWrite]
    facts: Mapping[str, Fact]
    living: Sequence[Fact]
    at: datetime | None = None


def undo_plan(request: UndoTask) -> UndoPlan:
    """Plan to take the turn's writes back, the last write first. Include what was taken back already."""
    steps: list[TakenBack] = []
    left: list[Left] = []
    taught = {write.inserts for write in request.writes if write.inserts is not None}
    for write in reversed(request.writes):
        new = request.facts.get(write.inserts or "")
        if new is not None:
            reason = change_since(new, request.turn_id)
            if reason is not None:
                left.append(Left(new.id, new.key, reason))
                continue
            if new.status == "rejected":
                continue
        old = _ended_by(write, new, request, taught)
        if old is not None and _has_rival(old, request.living, taught):
            left.append(Left(old.id, old.key, "another fact lives under its key now"))
            old = None
        if new is not None or old is not None:
            steps.append(TakenBack(_change(new, old), new, old))
    unconfirmed = tuple(write for write in request.writes if write.confirmed_ms is not None)
    return UndoPlan(tuple(steps), tuple(left), unconfirmed)


def change_since(fact: Fact, turn_id: str) -> str | None:
    """Return why `fact` is no longer as the turn left it, or None. Ignore confirmations and approvals since then."""
    if fact.status == "forgotten":
        return "a person has forgotten it"
    if fact.status in {"undone", "rejected"}:
        return None
    if was_changed_by_person(fact):
        return _CHANGED
    if fact.ended is None or fact.ended.turn_id == turn_id:
        return None
    return _CHANGED if fact.ended.by == "person" else "a later turn has superseded or ended it"


def _ended_by(write: PlannedWrite, new: Fact | None, request: UndoTask, taught: Collection[str]) -> Fact | None:
    """Return the fact that `write` or a person's approval of it ended, also if this undo has restored it already."""
    for fact_id in (write.ends, write.replaces, new.replaces if new is not None else None):
        fact = request.facts.get(fact_id or "")
        if fact is None or fact.id in taught:
            continue
        if _is_ended_by(fact, request.turn_id) or _is_restored(fact, request.turn_id, request.at):
            return fact
    return None


def _is_ended_by(fact: Fact, turn_id: str) -> bool:
    return fact.status == "active" and fact.ended is not None and fact.ended.turn_id == turn_id


def _is_restored(fact: Fact, turn_id: str, at: datetime | None) -> bool:
    if at is None or not fact.is_open:
        return False
    mark = ("undo", turn_id, iso(at))
    return any(mark == (ended["by"], ended["turn_id"], ended["at"]) for ended in _ends(fact))


def _ends(fact: Fact) -> Iterator[Mapping[str, Any]]:
    return (version["ended"] for version in fact.history)


def _has_rival(old: Fact, living: Sequence[Fact], taught: Collection[str]) -> bool:
    if old.ended is None:
        return False
    restored = replace(old, valid_to=old.ended.was_valid_to)
    return any(is_rival(fact, restored) and fact.id not in taught for fact in living)


def _change(new: Fact | None, old: Fact | None) -> Change:
    """Return the change that the user sees: an undone add is a delete, an undone delete an add."""
    reason = "undone"
    if new is None or new.proposes == "delete":
        shown = old or new
        assert shown is not None
        if old is None:
            return Change("delete", shown.id, shown.key, shown.text, None, "", "the proposed deletion is undone")
        return Change("add", old.id, old.key, None, old.text, "", reason)
    if old is None:
        return Change("delete", new.id, new.key, new.text, None, "", reason)
    return Change("update", old.id, old.key, new.text, old.text, "", reason)


async def plan_undo(facts: Facts, turn: Turn, update: Update, *, now: datetime) -> UndoPlan:
    """Read the facts that are stored now, and plan the undo of `turn`."""
    ids = {
        fact_id
        for write in update.writes
        for fact_id in (write.inserts, write.ends, write.replaces)
        if fact_id is not None
    }
    user_id = turn.message.user_id
    found = await _by_id(facts, user_id, ids)
    found |= await _by_id(facts, user_id, {fact.replaces for fact in found.values() if fact.replaces} - ids)
    living = [fact for fact in await facts.living(turn.message.scope, at=now, limit=MOST_FACTS) if fact.is_living(now)]
    at = update.undo.at if update.undo is not None else None
    return undo_plan(UndoTask(turn.message.turn_id, update.writes, found, living, at))


async def undo_turn(facts: Facts, turn: Turn, update: Update, *, now: datetime) -> Update:
    """Take back what the turn taught, as its update's `undo` requests; return the update with the result.

    Without `force`, change nothing if a fact has changed since, unless the undo was begun before a kill.
    """
    wish = update.undo
    if wish is None or wish.done:
        return update
    made = await plan_undo(facts, turn, update, now=now)
    turn_id = turn.message.turn_id
    if made.left and not wish.force and not any(_is_begun(step, wish, turn_id) for step in made.steps):
        return replace(update, undo=replace(wish, done=True, changes=(), left=made.left))
    changes: list[Change] = []
    left = list(made.left)
    for step in made.steps:
        lost = await _take_back(facts, step, wish, turn_id)
        if lost is None:
            changes.append(_shown(step, turn.message.agent_id))
        else:
            left.append(lost)
    for write in made.unconfirmed:
        await _unconfirm(facts, turn.message.user_id, write)
    return replace(
        update,
        undo=replace(wish, done=True, changes=tuple(reversed(changes)), left=tuple(left)),
        # Blanked, because a replay or learning again would do the recorded writes once more.
        writes=tuple(PlannedWrite(at_ms=write.at_ms) for write in update.writes),
    )


def _shown(step: TakenBack, agent_id: str | None) -> Change:
    """Return the change of a step, without a restored value that the turn's agent does not see (`without_unseen`)."""
    is_unseen = agent_id is not None and step.restored is not None and step.restored.agent_id != agent_id
    return replace(step.change, after=None) if is_unseen else step.change


def _is_begun(step: TakenBack, wish: Undo, turn_id: str) -> bool:
    if step.undone is not None:
        return step.undone.status == "undone"
    return step.restored is not None and _is_restored(step.restored, turn_id, wish.at)


async def _take_back(facts: Facts, step: TakenBack, wish: Undo, turn_id: str) -> Left | None:
    """Undo the new fact, then restore the old one; return what is left because a person changed it in between."""
    ended = Ended("undo", wish.at, turn_id)

    def undone(fact: Fact) -> Fact | None:
        if fact.status == "undone" or change_since(fact, turn_id) is not None:
            return None
        return fact.revised(at=wish.at, status="undone", ended=ended)

    def restored(fact: Fact) -> Fact | None:
        if fact.ended is None or not _is_ended_by(fact, turn_id):
            return None
        history = with_version(fact, replace(ended, reason="restored"))
        return fact.revised(at=wish.at, ended=None, valid_to=fact.ended.was_valid_to, history=history)

    # Undone before the old fact is restored: two facts never live under one key, even after a kill in between.
    if step.undone is not None:
        known = step.undone
        fact = await revise(facts, user_id=known.user_id, fact_id=known.id, change=undone)
        if fact is not None and fact.status != "undone":
            return Left(fact.id, fact.key, change_since(fact, turn_id) or _CHANGED)
    if step.restored is not None:
        await revise(facts, user_id=step.restored.user_id, fact_id=step.restored.id, change=restored)
    return None


async def _unconfirm(facts: Facts, user_id: str, write: PlannedWrite) -> None:
    """Take a confirmation back, unless the fact was confirmed again since."""
    if write.confirms is None or write.confirmed_ms is None:
        return
    before = from_ms(write.confirmed_ms)

    def unconfirmed(fact: Fact) -> Fact | None:
        if fact.confirmed_at != write.at or before >= write.at or not (fact.is_open or fact.status == "proposed"):
            return None
        return fact.revised(at=fact.updated_at, confirmed_at=before, indexed=fact.indexed)

    await revise(facts, user_id=user_id, fact_id=write.confirms, change=unconfirmed)


async def _by_id(facts: Facts, user_id: str, ids: Collection[str]) -> dict[str, Fact]:
    found = [
        fact for batch in batches(sorted(ids), _BATCH) for fact in await facts.facts(user_id=user_id, fact_ids=batch)
    ]
    return {fact.id: fact for fact in found}
