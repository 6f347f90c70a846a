"""Reads EXTRACTION_PROMPT_FILE and EXTRACTION_SCHEMA_FILE, once at the start and not on the event loop."""

import json
from pathlib import Path

from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.values.errors import ConfigurationError


def read_rules(path: Path | None) -> str | None:
    """Return the instructions that replace the built-in ones; None without a file.

    Raises:
        ConfigurationError: the file cannot be read, or is empty.
    """
    if path is None:
        return None
    rules = _text(path, "EXTRACTION_PROMPT_FILE").strip()
    if not rules:
        raise ConfigurationError(f"EXTRACTION_PROMPT_FILE names an empty file: {path}.")
    return rules


def read_schema(path: Path | None) -> WantedKeys | None:
    """Return the keys to learn; None, which means all, without a file.

    Raises:
        ConfigurationError: the file cannot be read, or is no schema that can be used.
    """
    if path is None:
        return None
    try:
        schema = json.loads(_text(path, "EXTRACTION_SCHEMA_FILE"))
    except (ValueError, RecursionError):
        raise ConfigurationError(f"EXTRACTION_SCHEMA_FILE names a file that is no JSON: {path}.") from None
    return WantedKeys.from_schema(schema)


def _text(path: Path, setting: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{setting} names a file that cannot be read ({type(error).__name__}): {path}."
        ) from None
