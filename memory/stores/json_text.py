"""Converts plain JSON values to text, in which both stores keep metadata and results (keys may hold dots and "$")."""

import json
from collections.abc import Mapping
from typing import Any


def to_json(value: Mapping[str, Any]) -> str:
    """Return `value` as compact JSON text, in which characters beyond ASCII stay readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else "{}"


def from_json(text: str) -> dict[str, Any]:
    """Return the values that `to_json` wrote as `text`."""
    return {} if text == "{}" else json.loads(text)
