"""Converts plain JSON values to text, in which both stores keep metadata and results (keys may hold dots and "$")."""

import json
from collections.abc import Mapping
from typing import Any

import orjson

_PLAIN = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def to_json(value: Mapping[str, Any]) -> str:
    """Return `value` as compact JSON text, in which characters beyond ASCII stay readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else "{}"


def result_to_json(result: Mapping[str, Any]) -> str:
    """Return a turn's result as JSON text, as `to_json` does but for the form of some numbers: 1e16 for 1e+16.

    It takes a tenth of the time, and results are long; nothing compares their texts.
    """
    try:
        return orjson.dumps(result, option=_PLAIN).decode()
    except orjson.JSONEncodeError:  # numbers beyond 64 bits
        return to_json(result)


def from_json(text: str) -> dict[str, Any]:
    """Return the values that `to_json` wrote as `text`."""
    return {} if text == "{}" else json.loads(text)
