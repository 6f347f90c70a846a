"""A filter over what is remembered: conditions on reserved names and metadata, joined by and, or, not.

`fulfilled` alone defines what a filter means: indexes and stores may narrow down where it looks, and change no answer.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from recollect.memory.values.frozen import frozen

Reserved = Literal["role", "name", "kind", "source", "created_at", "agent_id", "thread_id"]
"""The names that mean a field of the item, not a key of its metadata."""
Operator = Literal["eq", "ne", "in", "gte", "gt", "lte", "lt"]
Scalar = str | int | float | bool
RESERVED: frozenset[str] = frozenset(get_args(Reserved))

_DATED = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "gte": operator.ge,
    "gt": operator.gt,
    "lte": operator.le,
    "lt": operator.lt,
}


@frozen
class Item:
    """An item that a filter looks at: a message, fact, summary or document. None where it has no such field."""

    kind: str
    created_at: datetime
    role: str | None = None
    name: str | None = None
    source: str | None = None
    agent_id: str | None = None
    thread_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class Condition:
    """One condition: `name` is a reserved name, or a key of the metadata; `operand` a tuple for the operator `in`."""

    name: str
    is_reserved: bool
    operator: Operator
    operand: Scalar | tuple[Scalar, ...]

    def fulfilled(self, item: Item) -> bool:
        """Tell whether the item fulfils it; without a value it fulfils `ne` alone."""
        value: Any = getattr(item, self.name) if self.is_reserved else item.metadata.get(self.name)
        is_missing = value is None if self.is_reserved else self.name not in item.metadata
        return self.operator == "ne" if is_missing else _holds(value, self.operator, self.operand)


@frozen
class AllOf:
    """A filter that an item fulfils where it fulfils all `parts`."""

    parts: tuple["Filter", ...]

    def fulfilled(self, item: Item) -> bool:
        """Tell whether the item fulfils every part."""
        return all(part.fulfilled(item) for part in self.parts)


@frozen
class AnyOf:
    """A filter that an item fulfils where it fulfils one of `parts`."""

    parts: tuple["Filter", ...]

    def fulfilled(self, item: Item) -> bool:
        """Tell whether the item fulfils a part."""
        return any(part.fulfilled(item) for part in self.parts)


@frozen
class Not:
    """A filter that an item fulfils where it does not fulfil `part`."""

    part: "Filter"

    def fulfilled(self, item: Item) -> bool:
        """Tell whether the item does not fulfil the part."""
        return not self.part.fulfilled(item)


Filter = Condition | AllOf | AnyOf | Not


def of_agent(agent_id: str, asked: Filter | None = None) -> Filter:
    """Return the filter for what has the label of this agent, and fulfils `asked`."""
    labelled = Condition("agent_id", is_reserved=True, operator="eq", operand=agent_id)
    return labelled if asked is None else AllOf((labelled, asked))


def read_instant(text: str) -> datetime | None:
    """Return the time that a text names, or None: 2026-01-31, or 2026-01-31T09:30:00Z; without an offset it is UTC."""
    if not _DATED.fullmatch(text):
        return None
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _holds(value: Any, asked: Operator, operand: Scalar | tuple[Scalar, ...]) -> bool:
    """Tell whether a value fulfils an operator. A list does where one of its items does."""
    if isinstance(value, list | tuple):
        return any(_holds(item, asked, operand) for item in cast("Sequence[Any]", value))
    if isinstance(operand, tuple):
        return any(_equal(value, one) for one in operand)
    if asked == "ne":
        return not _equal(value, operand)
    return _equal(value, operand) if asked == "eq" else _ordered(value, asked, operand)


def _equal(value: Any, operand: Scalar) -> bool:
    """Tell whether two scalars are equal; a time equals a text that names it, and true is not 1."""
    if isinstance(value, datetime):
        return isinstance(operand, str) and value == read_instant(operand)
    if isinstance(value, bool) or isinstance(operand, bool):
        return value is operand
    if isinstance(value, str) or isinstance(operand, str):
        return isinstance(value, str) and value == operand
    return isinstance(value, int | float) and value == operand


def _ordered(value: Any, asked: Operator, operand: Scalar) -> bool:
    """Compare two numbers, or two texts. Where the operand names a time, texts are read as times."""
    compare = _COMPARED[asked]
    if isinstance(operand, str):
        instant = read_instant(operand)
        if instant is not None:
            time = read_instant(value) if isinstance(value, str) else value
            return isinstance(time, datetime) and compare(time, instant)
        return isinstance(value, str) and compare(value, operand)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and not isinstance(operand, bool) and compare(value, operand)
