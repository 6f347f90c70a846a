import json
from pathlib import Path

import pytest

from recollect.memory.providers.extraction_files import read_rules, read_schema
from recollect.memory.values.errors import ConfigurationError


def test_without_files_there_are_none() -> None:
    assert read_rules(None) is None
    assert read_schema(None) is None


def test_files_are_read(tmp_path: Path) -> None:
    rules, schema = tmp_path / "rules.txt", tmp_path / "schema.json"
    rules.write_text("\nOnly shoes \u00e4.\n", encoding="utf-8")
    schema.write_text(json.dumps({"properties": {"shoe_size": {"type": "integer"}}}), encoding="utf-8")
    assert read_rules(rules) == "Only shoes \u00e4."
    wanted = read_schema(schema)
    assert wanted is not None
    assert list(wanted.keys) == ["shoe_size"]


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe"])
def test_an_unreadable_prompt_names_its_setting(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "rules.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="EXTRACTION_PROMPT_FILE"):
        read_rules(path)


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe", b"[]", b"[" * 100_000, b'{"properties": {"A": {}}}'])
def test_an_unreadable_schema_names_its_setting(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "schema.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="EXTRACTION_SCHEMA_FILE"):
        read_schema(path)
