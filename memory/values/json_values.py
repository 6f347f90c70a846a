"""The rules of plain JSON that every store can hold."""

import json
import math
from typing import Any, cast

from recollect.memory.values.text import text_problem

MOST_METADATA_DEPTH = 20
MOST_METADATA_CHARACTERS = 100_000
"""The longest metadata of a fact as JSON text: a fact keeps them in each of its versions."""


def json_problem(value: object, levels: int) -> str | None:
    """Return why a store cannot hold the JSON: a text, a number, or more than `levels` levels; None where it can.

    An empty object or list is a value of the level that it stands in, not a further level.
    """
    return _problem(value, levels, f"must not be nested deeper than {levels} levels")


def _problem(value: object, left: int, too_deep: str) -> str | None:
    if isinstance(value, str):
        return text_problem(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "must not contain NaN or Infinity"
    if not isinstance(value, dict | list):
        return None
    if left == 0 and value:
        return too_deep
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value)
        parts: list[object] = [*inner.keys(), *inner.values()]
    else:
        parts = cast("list[object]", value)
    return next((problem for part in parts if (problem := _problem(part, left - 1, too_deep)) is not None), None)


def metadata_problem(value: Any) -> str | None:
    """Return why the value is no metadata of a fact, or None."""
    if not isinstance(value, dict):
        return "must be an object"
    given = cast("dict[str, Any]", value)
    problem = json_problem(given, MOST_METADATA_DEPTH)
    if problem is not None:
        return problem
    try:
        text = json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError):
        return "must be plain JSON"
    return (
        None if len(text) <= MOST_METADATA_CHARACTERS else f"must have at most {MOST_METADATA_CHARACTERS:,} characters"
    )
