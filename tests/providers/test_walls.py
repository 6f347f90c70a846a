"""A file that took over the process that reads it can do nothing behind each wall that claims to forbid it."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.providers.reading.limits import ReadingLimits
from recollect.memory.providers.reading.reader import FileReader

FILES = {"open to truncate", "open to read", "C open", "truncate", "rename", "mkdir", "remove", "C remove"}
PROCESSES = {"spawn", "C spawn", "C fork"}
PROC = {"own /proc", "parent's /proc"}
NETWORK = {"C connect", "C send"}
ALL = {*FILES, *PROCESSES, *PROC, *NETWORK, "chmod", "signal"}
KERNELS = ("namespaces", "privileges", "landlock", "rlimits", "seccomp")
IN_THE_CHILD = (
    "from recollect.memory.providers.reading import child;"
    "child.MODULES['deeds'] = 'tests.providers.deeds'; child.main()"
)
NUMBERS = ("500", "5000000", "100000000", "512000000", "30")


@pytest.fixture
def where(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Yield a folder with files, and a port where somebody listens."""
    for name in "aef":
        (tmp_path / name).write_text("kept")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield {"folder": str(tmp_path), "port": listening.getsockname()[1]}


def tried(where: dict[str, Any], *command: str) -> Any:
    given = json.dumps(where).encode()
    ended = subprocess.run([sys.executable, *command], input=given, capture_output=True, check=True, timeout=60)
    return json.loads(ended.stdout)


def behind(where: dict[str, Any], *names: str) -> dict[str, str]:
    """Return what became of each deed behind these walls."""
    in_force, outcomes = tried(where, "-m", "tests.providers.deeds", ",".join(names))
    if lacking := set(names) - set(in_force):
        pytest.skip(f"this machine lacks {sorted(lacking)}")
    return outcomes


def done(outcomes: dict[str, str]) -> set[str]:
    assert set(outcomes) == ALL
    return {name for name, outcome in outcomes.items() if outcome == "done"}


def is_untouched(where: dict[str, Any]) -> bool:
    folder = Path(where["folder"])
    return {path.name: path.read_text() for path in folder.iterdir()} == dict.fromkeys("aef", "kept")


def test_without_walls_everything_is_possible(where: dict[str, Any]) -> None:
    _, outcomes = tried(where, "-m", "tests.providers.deeds", "none")
    assert done(outcomes) == ALL


def test_nothing_is_possible_inside_the_child(where: dict[str, Any]) -> None:
    said = tried(where, "-c", IN_THE_CHILD, "deeds", *NUMBERS)
    assert done(json.loads(said["pages"][0])) == set()
    assert is_untouched(where)


def test_the_kernels_walls_need_no_other(where: dict[str, Any]) -> None:
    assert done(behind(where, *KERNELS)) == set()
    assert is_untouched(where)


@pytest.mark.parametrize(
    ("names", "forbidden"),
    [
        (["seccomp"], ALL),
        (["privileges", "landlock"], {*FILES, *PROC, "spawn", "C spawn", "C connect"}),
        (["namespaces"], NETWORK),
        (["rlimits"], {"open to truncate", "open to read", "C open", *PROC, *NETWORK}),
        (["audit"], ALL - NETWORK - {"C spawn", "C fork", "C open", "C remove"}),
    ],
)
def test_each_wall_holds_by_itself(where: dict[str, Any], names: list[str], forbidden: set[str]) -> None:
    assert done(behind(where, *names)) & forbidden == set()


async def test_the_reader_says_which_walls_are_in_force() -> None:
    walls = await FileReader(ReadingLimits(500, 5_000_000, 100_000_000)).walls()
    assert {*walls.in_force, *walls.missing} == {*KERNELS, "audit"}
    assert "audit" in walls.in_force
    assert not set(walls.in_force) & set(walls.missing)


async def test_a_process_that_does_not_answer_is_asked_again_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, broken = tmp_path / "asked", tmp_path / "broken"
    broken.write_text(f"#!/bin/sh\necho once >> {asked}\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    now = 1_000.0
    reader = FileReader(ReadingLimits(500, 5_000_000, 100_000_000), clock=lambda: now)
    for _ in range(3):
        assert (await reader.walls()).in_force == ()
    assert asked.read_text() == "once\n"
    now += 60
    await reader.walls()
    assert asked.read_text() == "once\nonce\n"
    monkeypatch.undo()
    now += 60
    assert (await reader.walls()).in_force
