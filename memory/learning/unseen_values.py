"""Leaves values out of a turn's changes that the turn's agent does not see: those of facts with another label.

A label is no namespace: what a user tells one agent replaces what another had learned. The changes are shown to the
keys of the turn's own agent, so they must not quote what was replaced.
"""

from collections.abc import Iterable
from dataclasses import replace

from recollect.memory.learning.plan import Plan
from recollect.memory.values.decision import Change
from recollect.memory.values.fact import Fact
from recollect.memory.values.planned_write import PlannedWrite


def without_unseen(made: Plan, facts: Iterable[Fact], agent_id: str | None) -> Plan:
    """Return the plan of a turn with the label `agent_id`, without earlier values of those `facts` that lack it."""
    if agent_id is None:
        return made
    unseen = {fact.id for fact in facts if fact.agent_id != agent_id}
    changes = (_shown(*pair, unseen) for pair in zip(made.changes, made.writes, strict=True))
    return replace(made, changes=tuple(changes))


def _shown(change: Change, write: PlannedWrite, unseen: set[str]) -> Change:
    if unseen.isdisjoint({change.fact_id, write.ends, write.confirms, write.replaces}):
        return change
    return replace(change, before=None, after=None if change.decision == "keep" else change.after)
