"""Converts the end of a fact and its earlier versions to JSON text and back, for both stores."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from recollect.memory.stores.json_text import to_json
from recollect.memory.values.fact import Ended
from recollect.memory.values.times import from_ms, to_ms


def ended_to_json(ended: Ended | None) -> str | None:
    """Return `ended` as JSON text, its time in epoch ms; None stays None."""
    if ended is None:
        return None
    record = {"by": ended.by, "at": to_ms(ended.at), "turn_id": ended.turn_id, "reason": ended.reason}
    if ended.was_valid_to is not None:
        record["was_valid_to"] = to_ms(ended.was_valid_to)
    return to_json(record)


def ended_from_json(text: str | None) -> Ended | None:
    """Return the end that `ended_to_json` wrote as `text`."""
    if text is None:
        return None
    record: dict[str, Any] = json.loads(text)
    until = record.get("was_valid_to")
    return Ended(
        by=record["by"],
        at=from_ms(record["at"]),
        turn_id=record.get("turn_id"),
        reason=record.get("reason"),
        was_valid_to=None if until is None else from_ms(until),
    )


def history_to_json(history: Sequence[Mapping[str, Any]]) -> str:
    """Return `history` as a JSON list, oldest version first."""
    return "[" + ",".join(to_json(version) for version in history) + "]"


def history_from_json(text: str) -> tuple[Mapping[str, Any], ...]:
    """Return the versions that `history_to_json` wrote as `text`, oldest first."""
    return () if text == "[]" else tuple(json.loads(text))
