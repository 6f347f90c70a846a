import json
import re
from enum import Enum
from pathlib import Path

import pytest
from pydantic_core import to_jsonable_python

from recollect.settings import Settings

EXAMPLE = Path(__file__).parents[2] / ".env.example"
ENTRY = re.compile(r"^(?P<off># ?)?(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>\S*)", re.MULTILINE)


@pytest.fixture
def entries() -> list[re.Match[str]]:
    return list(ENTRY.finditer(EXAMPLE.read_text(encoding="utf-8")))


def as_written(default: object) -> str:
    """Return a default as a line of `.env` would say it; empty where there is none."""
    match default:
        case None | "" | () | []:
            return ""
        case bool():
            return str(default).lower()
        case Enum() | str() | int() | float() | Path():
            return str(default.value if isinstance(default, Enum) else default)
        case _:
            return json.dumps(to_jsonable_python(default))


def same(written: str, default: str) -> bool:
    """Tell whether two spellings mean one value: 30 and 30.0, data and ./data do."""
    try:
        return float(written) == float(default)
    except ValueError:
        return written.removeprefix("./").strip("\"'") == default.removeprefix("./")


def test_env_example_names_every_setting_once_and_nothing_else(entries: list[re.Match[str]]) -> None:
    names = [entry["name"] for entry in entries]

    assert sorted(names) == sorted(name.upper() for name in Settings.model_fields)


def test_env_example_shows_the_defaults(entries: list[re.Match[str]]) -> None:
    fields = {name.upper(): field for name, field in Settings.model_fields.items()}
    defaults = {name: as_written(field.get_default(call_default_factory=True)) for name, field in fields.items()}

    wrong = {
        entry["name"]: (entry["value"], defaults[entry["name"]])
        for entry in entries
        if defaults.get(entry["name"]) and not same(entry["value"], defaults[entry["name"]])
    }

    assert not wrong


def test_env_example_sets_nothing_by_itself(entries: list[re.Match[str]]) -> None:
    assert [entry["name"] for entry in entries if not entry["off"] and entry["value"]] == []
