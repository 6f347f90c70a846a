"""Answer: reads decisions out of any JSON in the extraction model's answer, each item on its own. Pure.

Near misses are accepted (`quote` for evidence, `fact_id` for fact, numbers for strings). An item that cannot be read is
refused with a reason; nothing raises.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from recollect.memory.facts.wording import clean_excerpt
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.values.decision import Decision, FactScope, Proposal, RefusedProposal
from recollect.memory.values.frozen import frozen

MOST_CHARACTERS = 200_000
MOST_ITEMS = 500
_MOST_STARTS = 50

_DECISIONS: dict[str, Decision] = {
    "add": "add",
    "create": "add",
    "insert": "add",
    "update": "update",
    "replace": "update",
    "change": "update",
    "delete": "delete",
    "remove": "delete",
    "keep": "keep",
    "confirm": "keep",
}
_SCOPES: dict[str, FactScope] = {"thread": "thread", "session": "thread", "conversation": "thread", "global": "global"}
_NAMES: dict[str, tuple[str, ...]] = {
    "decision": ("decision", "action", "operation", "op", "event"),
    "evidence": ("evidence", "quote"),
    "fact": ("fact", "fact_id", "fact_number", "number", "id"),
    "statement": ("statement", "sentence", "text"),
}
_NUMBER = late_pattern(r"[\[(#\s]*(\d{1,6})[\])\s]*")
_NOT_SHOWN = -1


@frozen
class Reading:
    """Holds the decisions that could be read, in their order, and those that could not."""

    proposals: tuple[Proposal, ...]
    refused: tuple[RefusedProposal, ...]


def read_args(args: Mapping[str, Any]) -> Reading | None:
    """Read the decisions in a function call's arguments; None if they hold no list of decisions, or are empty."""
    items = _items(args)
    return None if items is None else _read(items)


def read_decisions(text: str) -> Reading | None:
    """Read the decisions in a text that is JSON or holds it (in a fence, between prose); None without any.

    Read an empty object as an empty list of decisions.
    """
    if len(text) > MOST_CHARACTERS:
        return None
    if text.strip() == "{}":
        return Reading((), ())
    decoder = json.JSONDecoder()
    place = -1
    for _ in range(_MOST_STARTS):
        starts = [found for found in (text.find("{", place + 1), text.find("[", place + 1)) if found >= 0]
        if not starts:
            return None
        place = min(starts)
        try:
            value, _end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            continue
        items = _items(value)
        if items is not None:
            return _read(items)
    return None


def _items(value: object) -> Sequence[object] | None:
    """Return the list of decisions in a JSON value: itself, under `decisions`, or under its only list property."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        return items if not items or any(_is_decision(item) for item in items) else None
    if not isinstance(value, Mapping):
        return None
    found = cast("Mapping[str, object]", value)
    if "decisions" in found:
        return _under_decisions(found["decisions"])
    if _is_decision(found):
        return [found]
    lists = [cast("object", item) for item in found.values() if isinstance(item, list)]
    return _items(lists[0]) if len(lists) == 1 else None


def _under_decisions(value: object) -> Sequence[object] | None:
    if isinstance(value, str) and len(value) <= MOST_CHARACTERS:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, Mapping):
        return [cast("object", value)]
    return cast("list[object]", value) if isinstance(value, list) else None


def _is_decision(item: object) -> bool:
    return (
        isinstance(item, Mapping)
        and _DECISIONS.get(_name(_field(cast("Mapping[str, object]", item), "decision"))) is not None
    )


def _read(items: Sequence[object]) -> Reading:
    proposals: list[Proposal] = []
    refused: list[RefusedProposal] = []
    for item in items[:MOST_ITEMS]:
        read = (
            _proposal(cast("Mapping[str, object]", item))
            if isinstance(item, Mapping)
            else _unreadable("it is no object")
        )
        if isinstance(read, Proposal):
            proposals.append(read)
        else:
            refused.append(read)
    if len(items) > MOST_ITEMS:
        refused.append(_unreadable(f"{len(items) - MOST_ITEMS} more decisions were not read"))
    return Reading(tuple(proposals), tuple(refused))


def _proposal(item: Mapping[str, object]) -> Proposal | RefusedProposal:
    named = _name(_field(item, "decision"))
    decision = _DECISIONS.get(named)
    if decision is None:
        return _unreadable("the decision is none of add, update, delete and keep", item)
    if isinstance(item.get("value"), Mapping):
        return _unreadable("the value is no text", item)
    return Proposal(
        decision=decision,
        key=_named_text(item.get("key")),
        value=_text(item.get("value")),
        statement=_text(_field(item, "statement")),
        evidence=_text(_field(item, "evidence")) or "",
        shown=_shown(_field(item, "fact")),
        scope=_SCOPES.get(_name(item.get("scope")), "user"),
        importance=_importance(item.get("importance")),
        tags=_tags(item.get("tags")),
        valid_from=_named_text(item.get("valid_from")),
        valid_to=_named_text(item.get("valid_to")),
    )


def _field(item: Mapping[str, object], name: str) -> object:
    return next((item[other] for other in _NAMES[name] if item.get(other) is not None), None)


def _name(value: object) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""


def _text(value: object) -> str | None:
    """Return a string, a number, a boolean (yes, no) or a list of them as text; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number_text(value)
    if isinstance(value, list):
        parts = [_text(part) for part in cast("list[object]", value) if not isinstance(part, list)]
        return ", ".join(part for part in parts if part) or None
    return None


def _number_text(value: float) -> str | None:
    try:
        return str(int(value)) if float(value).is_integer() else str(value)
    except (OverflowError, ValueError):
        return None


def _named_text(value: object) -> str | None:
    text = _text(value)
    return None if text is None or text.strip().casefold() in {"", "null", "none"} else text.strip()


def _shown(value: object) -> int | None:
    """Return the number of a known fact; None for null and 0, and -1, which is never shown, for what is no number."""
    text = _named_text(value)
    if text is None or text == "0":
        return None
    number = None if isinstance(value, bool) else _NUMBER.fullmatch(text)
    return int(number[1]) if number else _NOT_SHOWN


def _importance(value: object) -> float:
    try:
        return float(value) if isinstance(value, int | float | str) else 0.5
    except (OverflowError, ValueError):
        return 0.5


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    texts = (_text(tag) for tag in cast("list[object]", value)[:100] if not isinstance(tag, list))
    return tuple(text for text in texts if text)


def _unreadable(reason: str, item: Mapping[str, object] | None = None) -> RefusedProposal:
    fields = item or {}
    return RefusedProposal(
        decision=clean_excerpt(_text(_field(fields, "decision"))) or "",
        fact_id=None,
        key=clean_excerpt(_text(fields.get("key"))),
        value=clean_excerpt(_text(fields.get("value"))),
        evidence=clean_excerpt(_text(_field(fields, "evidence"))) or "",
        reason=reason,
    )
