"""Reads a filter from JSON. What is malformed, or beyond the bounds, is refused under the name of its place."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.filtering.filter import (
    RESERVED,
    AllOf,
    AnyOf,
    Condition,
    Filter,
    Not,
    Operator,
    Scalar,
    read_instant,
)
from recollect.memory.values.text import text_problem

MOST_DEPTH = 5
"""How deep `and`, `or` and `not` may be nested."""
MOST_CONDITIONS = 32
MOST_VALUES = 100
"""The most values of one `in`."""
MOST_KEY_CHARACTERS = 128
MOST_FILTER_CHARACTERS = 16_000
"""The longest filter in an address or a header."""
MOST_PATH_CHARACTERS = 200
METADATA = "metadata."
"""Leads to a metadata key whose name is reserved, such as `metadata.role`."""
EXAMPLE: Mapping[str, Any] = {"project": "apollo", "priority": {"gte": 2}, "lang": {"ne": "de"}}

_OPERATORS: Sequence[str] = [name for name in get_args(Operator) if name != "eq"]
_ORDERING = frozenset({"gte", "gt", "lte", "lt"})


def read_filter(said: object, *, field: str = "filter") -> Filter:
    """Return the filter that `said`, plain JSON, describes.

    Raises:
        InvalidRequest: it describes none; the error names the place, such as `filter.priority.gte`.
    """
    return _ConditionCount().objects(said, field, depth=0)


def read_filter_text(text: str, *, field: str = "filter") -> Filter:
    """Return the filter that a text of JSON describes.

    Raises:
        InvalidRequest: see `read_filter`; or the text is no JSON.
    """
    return read_filter(read_json_object(text, field=field), field=field)


def read_json_object(text: str, *, field: str = "filter") -> dict[str, Any]:
    """Return the object that a text of JSON holds.

    Raises:
        InvalidRequest: it holds none.
    """
    try:
        said: object = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise _refused(field, 'must be a JSON object such as {"project": "apollo"}')
    return cast("dict[str, Any]", said)


class _ConditionCount:
    """Counts the conditions of one filter while it is read."""

    def __init__(self) -> None:
        self._conditions = 0

    def objects(self, said: object, path: str, *, depth: int) -> Filter:
        """Read an object: several names are joined by *and*."""
        if not isinstance(said, dict):
            raise _refused(path, "must be an object")
        if not said:
            raise _refused(path, 'must have a condition, such as {"project": "apollo"}')
        parts: list[Filter] = []
        for name, value in cast("Mapping[str, object]", said).items():
            place = f"{path}.{name}"
            if name in {"and", "or", "not"}:
                if depth == MOST_DEPTH:
                    raise _refused(place, f"must not be nested deeper than {MOST_DEPTH} levels")
                parts.append(self._joined(name, value, place, depth=depth + 1))
            else:
                parts += self._conditions_on(name, value, place)
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _joined(self, name: str, value: object, path: str, *, depth: int) -> Filter:
        if name == "not":
            return Not(self.objects(value, path, depth=depth))
        if not isinstance(value, list):
            raise _refused(path, "must be a list of objects")
        objects = cast("Sequence[object]", value)
        if len(objects) > MOST_CONDITIONS:
            raise _refused(path, f"must have at most {MOST_CONDITIONS} objects")
        parts = tuple(self.objects(one, f"{path}.{place}", depth=depth) for place, one in enumerate(objects))
        return AllOf(parts) if name == "and" else AnyOf(parts)

    def _conditions_on(self, name: str, value: object, path: str) -> list[Filter]:
        is_reserved = name in RESERVED
        key = name if is_reserved else name.removeprefix(METADATA)
        if not 1 <= len(key) <= MOST_KEY_CHARACTERS or text_problem(key) is not None:
            raise _refused(path, f"must be a key of 1 to {MOST_KEY_CHARACTERS} characters")
        if not isinstance(value, dict):
            return [self._condition(key, is_reserved, "eq", value, path)]
        asked = cast("Mapping[str, object]", value)
        if not asked:
            raise _refused(path, f"must be a value, or an object with one of {', '.join(_OPERATORS)}")
        # Equality is a plain value: its name here, `eq`, is no operator of a request.
        for operator in asked:
            if operator not in _OPERATORS:
                raise _refused(f"{path}.{operator}", f"is no operator; there are {', '.join(_OPERATORS)}")
        return [
            self._condition(key, is_reserved, operator, operand, f"{path}.{operator}")
            for operator, operand in asked.items()
        ]

    def _condition(self, key: str, is_reserved: bool, operator: str, operand: object, path: str) -> Filter:
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise _refused(path, f"is one condition too many: a filter has at most {MOST_CONDITIONS}")
        is_time = is_reserved and key == "created_at"
        if operator == "in":
            if not isinstance(operand, list) or len(cast("Sequence[object]", operand)) > MOST_VALUES:
                raise _refused(path, f"must be a list of at most {MOST_VALUES} values")
            read: Scalar | tuple[Scalar, ...] = tuple(
                _scalar(one, f"{path}.{place}", is_time=is_time)
                for place, one in enumerate(cast("Sequence[object]", operand))
            )
        else:
            read = _scalar(operand, path, is_time=is_time)
            if operator in _ORDERING and isinstance(read, bool):
                raise _refused(path, "must be a text or a number")
        return Condition(key, is_reserved, cast("Operator", operator), read)


def _scalar(said: object, path: str, *, is_time: bool) -> Scalar:
    if not isinstance(said, str | int | float):
        raise _refused(path, "must be a text, a number, true or false")
    if isinstance(said, float) and not math.isfinite(said):
        raise _refused(path, "must be a finite number")
    if isinstance(said, str) and (problem := text_problem(said)) is not None:
        raise _refused(path, problem)
    if is_time and not (isinstance(said, str) and read_instant(said) is not None):
        raise _refused(path, "must be a time such as 2026-01-31T09:30:00Z")
    return said


def _refused(path: str, problem: str) -> InvalidRequest:
    """Name the place, without what no answer can hold; keys are the caller's own."""
    place = path.encode("utf-8", "replace").decode()[:MOST_PATH_CHARACTERS]
    return InvalidRequest(
        f"The request is not valid: see {place.partition('.')[0]}.", problems=[Problem(place, problem)]
    )
