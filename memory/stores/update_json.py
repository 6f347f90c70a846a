"""Converts an update to the JSON text in which both stores keep it, and back.

Reading skips fields of later versions and gives missing fields their defaults. One version of this code writes an
update as one text always, also after reading it from that text: stores compare the texts to detect a change.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, cast

from recollect.memory.stores.json_text import to_json
from recollect.memory.values.decision import Change, Proposal, RefusedProposal
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.update import Left, PreviousAnswer, Step, StepName, Undo, Update

_CHANGE = tuple(item.name for item in fields(Change))
_REFUSED = tuple(item.name for item in fields(RefusedProposal))
_PROPOSAL = tuple(item.name for item in fields(Proposal))
_WRITE = tuple(item.name for item in fields(PlannedWrite))
_STEP = tuple(item.name for item in fields(Step))
_LEFT = tuple(item.name for item in fields(Left))


def update_to_json(update: Update) -> str:
    """Return the whole update as JSON text; times are in ISO 8601."""
    steps = {name: _step_record(step) for name, step in update.steps.items()}
    others: dict[str, Any] = {
        "model": update.model,
        "planned": update.planned,
        "changes": _records(update.changes, _CHANGE),
        "refused": _records(update.refused, _REFUSED),
        "proposals": _records(update.proposals, _PROPOSAL),
        "writes": _records(update.writes, _WRITE),
        "learned": update.learned,
        "wanted_model": update.wanted_model,
        "undo": None if update.undo is None else _undo_record(update.undo),
        "earlier": None if update.earlier is None else _earlier_record(update.earlier),
        "anew": update.anew,
    }
    said = {name: value for name, value in others.items() if value or isinstance(value, str)}
    return to_json({"steps": steps, **said})


def update_from_json(text: str) -> Update:
    """Return the update that `update_to_json` wrote as `text`."""
    record: dict[str, Any] = json.loads(text)
    steps: dict[str, dict[str, Any]] = record.get("steps", {})
    return Update(
        steps={cast("StepName", name): _step(stored) for name, stored in steps.items()},
        model=record.get("model"),
        planned=record.get("planned", False),
        changes=tuple(Change(**_known(item, _CHANGE)) for item in record.get("changes", ())),
        refused=tuple(RefusedProposal(**_known(item, _REFUSED)) for item in record.get("refused", ())),
        proposals=tuple(Proposal(**_tagged(item, _PROPOSAL)) for item in record.get("proposals", ())),
        writes=tuple(PlannedWrite(**_tagged(item, _WRITE)) for item in record.get("writes", ())),
        learned=record.get("learned", 0),
        wanted_model=record.get("wanted_model"),
        undo=_undo(record["undo"]) if "undo" in record else None,
        earlier=_earlier(record["earlier"]) if "earlier" in record else None,
        anew=record.get("anew", False),
    )


def is_indexed(update: Update) -> bool:
    """Tell whether the turn's messages are in the vector index."""
    step = update.steps.get("index")
    return step is not None and step.status == "done"


def _records(items: tuple[Any, ...], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{name: getattr(item, name) for name in names} for item in items]


def _known(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if name in record}


def _tagged(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {**_known(record, names), "tags": tuple(record.get("tags", ()))}


def _undo_record(undo: Undo) -> dict[str, Any]:
    return {
        "at": undo.at.isoformat(),
        "force": undo.force,
        "done": undo.done,
        "changes": _records(undo.changes, _CHANGE),
        "left": _records(undo.left, _LEFT),
    }


def _undo(record: Mapping[str, Any]) -> Undo:
    return Undo(
        at=datetime.fromisoformat(record["at"]),
        force=record.get("force", False),
        done=record.get("done", False),
        changes=tuple(Change(**_known(item, _CHANGE)) for item in record.get("changes", ())),
        left=tuple(Left(**_known(item, _LEFT)) for item in record.get("left", ())),
    )


def _earlier_record(earlier: PreviousAnswer) -> dict[str, Any]:
    return {
        "at": earlier.at.isoformat(),
        "writes": _records(earlier.writes, _WRITE),
        "fact_ids": list(earlier.fact_ids),
        "done": earlier.done,
    }


def _earlier(record: Mapping[str, Any]) -> PreviousAnswer:
    return PreviousAnswer(
        at=datetime.fromisoformat(record["at"]),
        writes=tuple(PlannedWrite(**_tagged(item, _WRITE)) for item in record.get("writes", ())),
        fact_ids=tuple(record.get("fact_ids", ())),
        done=record.get("done", False),
    )


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "status": step.status,
        "reason": step.reason,
        "tries": step.tries,
        "attempts": step.attempts,
        "due_at": None if step.due_at is None else step.due_at.isoformat(),
    }


def _step(record: Mapping[str, Any]) -> Step:
    values = _known(record, _STEP)
    if values.get("due_at") is not None:
        values["due_at"] = datetime.fromisoformat(values["due_at"])
    return Step(**values)
