"""Taking back what a turn taught: what it added is undone, what it superseded or deleted is restored.

`undo_plan` is pure and decides; `undo` does it, in the user's lane of updates. A write that was done already is found
done, so that a replay after a kill comes to the same.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory.decision import Change
from memory.documents import Facts
from memory.fact import Ended, Fact
from memory.fact_history import was_changed_by_person, with_version
from memory.fact_rivals import is_rival
from memory.fact_writes import revise
from memory.planned_write import PlannedWrite
from memory.recall import MOST_FACTS
from memory.times import iso
from memory.turn import Turn
from memory.update import Left, Undo, Update

_CHANGED = "a person has changed it"
_BATCH = 500


@dataclass(frozen=True, slots=True)
class TakenBack:
    """One change that is taken back: the fact to undo, the one to restore, and what that is to the user."""

    change: Change
    undone: Fact | None = None
    restored: Fact | None = None


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo takes back, in its order, and what has changed since and stays."""

    steps: tuple[TakenBack, ...] = ()
    left: tuple[Left, ...] = ()


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """All that a plan depends on: the writes of the turn, the facts they touched (by id), and the living ones.

    `at` is the time of the wish, which tells what this undo has restored already; None before there is one.
    """

    turn_id: str
    writes: Sequence[PlannedWrite]
    facts: Mapping[str, Fact]
    living: Sequence[Fact]
    at: datetime | None = None


def undo_plan(request: UndoRequest) -> UndoPlan:
    """What taking the turn's writes back comes to, the last one first. What was taken back already counts as such."""
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
    return UndoPlan(tuple(steps), tuple(left))


def change_since(fact: Fact, turn_id: str) -> str | None:
    """Why a fact is no longer as the turn left it, or None. That it was confirmed or approved since does not count."""
    if fact.status == "forgotten":
        return "a person has forgotten it"
    if fact.status in {"undone", "rejected"}:
        return None
    if was_changed_by_person(fact):
        return _CHANGED
    if fact.ended is None or fact.ended.turn_id == turn_id:
        return None
    return _CHANGED if fact.ended.by == "person" else "a later turn has superseded or ended it"


def _ended_by(write: PlannedWrite, new: Fact | None, request: UndoRequest, taught: Collection[str]) -> Fact | None:
    """The fact that the write, or a person's approval of it, has ended, or that this undo has restored already."""
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
    """The change as the user sees it: an undone add is a delete, an undone delete an add."""
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
    """The plan over what is stored now."""
    ids = {
        fact_id
        for write in update.writes
        for fact_id in (write.inserts, write.ends, write.replaces)
        if fact_id is not None
    }
    if not ids:
        return UndoPlan()
    user_id = turn.message.user_id
    found = await _by_id(facts, user_id, ids)
    found |= await _by_id(facts, user_id, {fact.replaces for fact in found.values() if fact.replaces} - ids)
    living = [fact for fact in await facts.living(turn.message.scope, at=now, limit=MOST_FACTS) if fact.is_living(now)]
    at = update.undo.at if update.undo is not None else None
    return undo_plan(UndoRequest(turn.message.turn_id, update.writes, found, living, at))


async def undo(facts: Facts, turn: Turn, update: Update, *, now: datetime) -> Update:
    """Take back what the turn taught, as its update's `undo` wishes; the update with what came of it.

    Without `force` nothing is done where something has changed since, unless a replay finds that it was begun.
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
            changes.append(step.change)
        else:
            left.append(lost)
    return replace(
        update,
        undo=replace(wish, done=True, changes=tuple(reversed(changes)), left=tuple(left)),
        # A replay, or learning again, must not do the old writes once more.
        writes=tuple(PlannedWrite(at_ms=write.at_ms) for write in update.writes),
    )


def _is_begun(step: TakenBack, wish: Undo, turn_id: str) -> bool:
    if step.undone is not None:
        return step.undone.status == "undone"
    return step.restored is not None and _is_restored(step.restored, turn_id, wish.at)


async def _take_back(facts: Facts, step: TakenBack, wish: Undo, turn_id: str) -> Left | None:
    """Undo and restore, in this order; what a person has changed in between is left."""
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

    if step.undone is not None:
        known = step.undone
        fact = await revise(facts, user_id=known.user_id, fact_id=known.id, change=undone)
        if fact is not None and fact.status != "undone":
            return Left(fact.id, fact.key, change_since(fact, turn_id) or _CHANGED)
    if step.restored is not None:
        await revise(facts, user_id=step.restored.user_id, fact_id=step.restored.id, change=restored)
    return None


async def _by_id(facts: Facts, user_id: str, ids: Collection[str]) -> dict[str, Fact]:
    ordered = sorted(ids)
    batches = [ordered[start : start + _BATCH] for start in range(0, len(ordered), _BATCH)]
    found = [fact for batch in batches for fact in await facts.facts(user_id=user_id, fact_ids=batch)]
    return {fact.id: fact for fact in found}
