"""Which `type` an import's line has, and whether it is a line of an export or one that an importer wrote."""

from collections.abc import Mapping
from typing import Any

from memory.exporting import TYPES
from memory.import_line import BadLine, thread_of

Group = tuple[str, str, str]
"""Lines of an export that stand together: of a turn, a thread or a document; its user and id."""
_OF_GROUP = {
    "message": ("turn", "turn_id"),
    "turn": ("turn", "turn_id"),
    "thread": ("thread", "thread_id"),
    "summary": ("thread", "thread_id"),
    "document": ("document", "id"),
}
_TELLING = {"message": "turn_id", "fact": "id", "summary": "by"}
"""The field that a line of an export has, where an importer's own line of the same type has none."""


def split_type(said: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The line's `type` (without one its `kind`, as it was called before) and its other fields.

    A line that says neither is a message.

    Raises:
        BadLine: there is no such type.
    """
    name = "type" if "type" in said else "kind"
    kind = said.get(name, "message")
    if not isinstance(kind, str) or kind not in TYPES:
        raise BadLine(f"type must be one of {', '.join(TYPES)}.", thread_of(said))
    return kind, {field: value for field, value in said.items() if field != name}


def is_exported(kind: str, fields: Mapping[str, Any]) -> bool:
    """Whether it is a line of an export."""
    telling = _TELLING.get(kind)
    return telling is None or telling in fields


def group_of(said: Mapping[str, Any]) -> Group | None:
    """What a line of an export belongs to; None for lines that stand alone, and those that are not to be read."""
    kind = said.get("type")
    if not isinstance(kind, str) or kind not in _OF_GROUP or not is_exported(kind, said):
        return None
    group, field = _OF_GROUP[kind]
    return group, str(said.get("user_id")), str(said.get(field))
