"""Plain JSON values as text, as both document stores keep metadata and results (keys may hold dots and dollars)."""

import json
from collections.abc import Mapping
from typing import Any


def to_json(value: Mapping[str, Any]) -> str:
    """Compact text; readable beyond ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else "{}"


def from_json(text: str) -> dict[str, Any]:
    """What `to_json` wrote."""
    return {} if text == "{}" else json.loads(text)
