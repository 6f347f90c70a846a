import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RUNTIME, DEVELOPMENT = "requirements.lock", "requirements-dev.lock"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def entries(lock: str) -> list[str]:
    """Return the lock's entries, each with its hashes, without comments."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [entry.replace("\\\n", " ") for entry in re.split(r"\n(?=\S)", text.strip())]


def pins(lock: str) -> dict[str, set[Requirement]]:
    """Return what the lock pins by name; more than one where Python versions or platforms differ."""
    found: dict[str, set[Requirement]] = {}
    for entry in entries(lock):
        requirement = Requirement(entry.split("--hash", 1)[0])
        found.setdefault(canonicalize_name(requirement.name), set()).add(requirement)
    return found


def asked(group: str) -> list[Requirement]:
    """Return a dependency group's requirements, included groups among them."""
    found: list[Requirement] = []
    for item in PROJECT["dependency-groups"][group]:
        found.extend([Requirement(item)] if isinstance(item, str) else asked(item["include-group"]))
    return found


def runtime() -> list[Requirement]:
    return [Requirement(text) for text in PROJECT["project"]["dependencies"]]


def extras() -> list[Requirement]:
    return [Requirement(text) for texts in PROJECT["project"]["optional-dependencies"].values() for text in texts]


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        pytest.param(RUNTIME, runtime() + asked("build"), id="runtime"),
        pytest.param(DEVELOPMENT, runtime() + extras() + asked("dev"), id="development"),
    ],
)
def test_every_dependency_is_pinned_to_a_version_that_fits(lock: str, wanted: list[Requirement]) -> None:
    pinned = pins(lock)
    for requirement in wanted:
        versions = [next(iter(pin.specifier)).version for pin in pinned.get(canonicalize_name(requirement.name), ())]
        assert versions, f"{requirement.name} is not in {lock}: run `make lock`"
        assert all(requirement.specifier.contains(version) for version in versions), f"{requirement}: {versions}"


@pytest.mark.parametrize("lock", [RUNTIME, DEVELOPMENT])
def test_every_entry_is_one_version_with_its_hashes(lock: str) -> None:
    for entry in entries(lock):
        assert re.match(
            r"[a-z0-9-]+(\[[a-z0-9,-]+\])?==[^\s;]+( ; [^\\]+?)?\s+(--hash=sha256:[0-9a-f]{64}\s*)+$", entry
        ), entry.split("--hash", 1)[0]


@pytest.mark.parametrize("lock", [RUNTIME, DEVELOPMENT])
def test_no_index_and_no_path_is_named(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")

    assert not re.search(r"://|--(extra-)?index-url|--find-links|^-[ef]\b|\s@\s", text, re.MULTILINE)


def test_what_is_tested_is_what_is_run() -> None:
    development = {(name, pin.specifier) for name, pinned in pins(DEVELOPMENT).items() for pin in pinned}
    run = {(name, pin.specifier) for name, pinned in pins(RUNTIME).items() for pin in pinned}

    assert run - development == set()
