"""Tells an import line's `type`, and whether an export wrote the line or an importer."""

from collections.abc import Mapping
from typing import Any

from recollect.memory.transfer.exporting import TYPES
from recollect.memory.transfer.import_line import BadLine, thread_of_line

Group = tuple[str, str, str]
"""Identifies lines of an export that stand together: "turn", "thread" or "document", its user and its id."""
_OF_GROUP = {
    "message": ("turn", "turn_id"),
    "turn": ("turn", "turn_id"),
    "thread": ("thread", "thread_id"),
    "summary": ("thread", "thread_id"),
    "document": ("document", "id"),
}
_TELLING = {"message": "turn_id", "fact": "id", "summary": "by"}
"""The field that only a line of an export has, not an importer's own line of that type."""


def split_type(said: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the line's `type` (or its `kind`, the field's older name) and its other fields.

    A line with neither field is a message.

    Raises:
        BadLine: the type is unknown.
    """
    name = "type" if "type" in said else "kind"
    kind = said.get(name, "message")
    if not isinstance(kind, str) or kind not in TYPES:
        raise BadLine(f"type must be one of {', '.join(TYPES)}.", thread_of_line(said))
    return kind, {field: value for field, value in said.items() if field != name}


def is_exported(kind: str, fields: Mapping[str, Any]) -> bool:
    """Tell whether an export wrote the line."""
    telling = _TELLING.get(kind)
    return telling is None or telling in fields


def group_of(said: Mapping[str, Any]) -> Group | None:
    """Return the group of an export's line; None for facts, lines of importers, and lines of unknown types."""
    kind = said.get("type")
    if not isinstance(kind, str) or kind not in _OF_GROUP or not is_exported(kind, said):
        return None
    group, field = _OF_GROUP[kind]
    return group, str(said.get("user_id")), str(said.get(field))
