"""Previewing: keeps what learning from a turn again was shown to do, and compares it with a plan made later. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from recollect.memory.learning.plan import Plan
from recollect.memory.learning.reconciliation import MOST_DECISIONS
from recollect.memory.ports.extractor import Extraction
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import PreviewOutdated
from recollect.memory.values.fact import Fact
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.preview import Preview
from recollect.memory.values.update import Update


def again(update: Update, *, model: str | None = None) -> Update:
    """Return the update of a turn that is to be learned from once more, by `model` if named. It voids its preview."""
    return replace(
        update,
        planned=False,
        learned=update.learned + 1,
        wanted_model=model,
        undo=None,
        anew=False,
        preview=update.voided,
    )


def previewed(extraction: Extraction, shown: Sequence[Fact], made: Plan, *, at: datetime) -> Preview:
    """Return the preview of the plan `made` from the model's answer; `shown` are the facts that the model was shown."""
    # A plan takes no more proposals than these: the others are among those that it refused.
    proposals = extraction.proposals[:MOST_DECISIONS]
    named = {number: shown[number - 1].id for one in proposals if (number := _number(one, len(shown)))}
    return Preview(
        id=str(uuid4()),
        at=at,
        model=extraction.model,
        proposals=tuple(_renumbered(one, list(named)) for one in proposals),
        named=tuple(named.values()),
        changes=made.changes,
        writes=made.writes,
        refused=(*extraction.refused, *made.refused),
    )


def named_facts(preview: Preview, living: Sequence[Fact]) -> list[Fact]:
    """Return the facts that the preview's proposals name, in the order of their numbers.

    Raises:
        PreviewOutdated: one of them no longer holds.
    """
    by_id: Mapping[str, Fact] = {fact.id: fact for fact in living}
    if not by_id.keys() >= set(preview.named):
        raise PreviewOutdated
    return [by_id[fact_id] for fact_id in preview.named]


def check_as_shown(preview: Preview, made: Plan) -> None:
    """Raise PreviewOutdated if the plan `made` now does anything else than the plan that was shown."""
    if made.changes != preview.changes or _timeless(made.writes) != _timeless(preview.writes):
        raise PreviewOutdated


def applied(update: Update, preview: Preview, made: Plan) -> Update:
    """Return the update with the plan as its recorded writes, which the facts step does without asking a model."""
    return replace(
        again(update),
        planned=True,
        model=preview.model,
        changes=(*update.changes, *made.changes),
        writes=(*update.writes, *made.writes),
        refused=(*update.refused, *preview.refused),
        preview=preview.ended("applied"),
    )


def without_own_keeps(update: Update, made: Plan) -> Plan:
    """Return the plan without confirmations of facts that the turn itself taught."""
    taught = {change.fact_id for change in update.changes}
    fresh = [
        (change, write)
        for change, write in zip(made.changes, made.writes, strict=True)
        if not (change.decision == "keep" and change.fact_id in taught)
    ]
    return replace(made, changes=tuple(change for change, _ in fresh), writes=tuple(write for _, write in fresh))


def _number(proposal: Proposal, most: int) -> int:
    """Return the number of the fact that the proposal names; 0 where it names none of the `most` that were shown."""
    return proposal.shown if proposal.shown is not None and 1 <= proposal.shown <= most else 0


def _renumbered(proposal: Proposal, numbers: Sequence[int]) -> Proposal:
    """Return the proposal with the place of its number among `numbers`; one that was never shown stays so."""
    if proposal.shown is None:
        return proposal
    return replace(proposal, shown=numbers.index(proposal.shown) + 1 if proposal.shown in numbers else -1)


def _timeless(writes: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """Return the writes without the times that differ between two plans of the same changes."""
    return [replace(write, at_ms=0, confirmed_ms=None) for write in writes]
