"""Checks what lies below DATA_DIR is its owner's alone, whatever the folder's own mode and the process's umask are."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.memory.stores.data_dir import own_data_dir
from recollect.memory.stores.private_folder import PrivateFolder
from recollect.memory.stores.terminal_history import TerminalHistory
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import point
from tests.contracts.index.test_edge import opened
from tests.service.support.commands import recollect
from tests.service.support.running import service


@pytest.fixture(autouse=True)
def lax_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Return what below the folder others may read, write or enter."""
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*") if not path.is_symlink()}
    return [f"{path.relative_to(folder)} {mode:o}" for path, mode in modes.items() if mode & 0o077]


def test_what_was_open_to_others_is_closed_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "index" / "deep").mkdir(parents=True)
    (folder / "index" / "deep" / "old.dat").write_text("")
    (folder / "recollect.db").write_text("")
    (folder / "tool").touch(mode=0o755)
    outside = tmp_path / "outside"
    outside.touch(mode=0o644)
    (folder / "link").symlink_to(outside)
    folder.chmod(0o755)
    with own_data_dir(folder, url=None):
        assert open_to_others(folder) == []
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755, "the folder's own mode is its owner's choice"
        assert stat.S_IMODE((folder / "index" / "deep" / "old.dat").stat().st_mode) == 0o600
        assert stat.S_IMODE((folder / "index").stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "tool").stat().st_mode) == 0o700, "its owner may still run it"
        assert stat.S_IMODE(outside.stat().st_mode) == 0o644


async def test_what_the_engine_makes_later_is_closed_too(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    async with opened(folder) as index:
        assert open_to_others(folder) == []
        for start in range(0, 2_100, 700):  # the engine makes and removes files at each flush
            await index.upsert([point(seed) for seed in range(start, start + 700)])
            assert open_to_others(folder) == []
        async with index.rebuilding() as successor:
            await successor.points.upsert([point(1)])
            await successor.promote()
        assert open_to_others(folder) == []
        await index.erase(Scope("ada"))
        assert open_to_others(folder) == []
    assert open_to_others(folder) == []
    assert [path.name for path in folder.iterdir() if path.suffix == ".current"]


def test_a_folder_is_looked_into_again_when_it_changes(tmp_path: Path) -> None:
    watched = PrivateFolder(tmp_path / "missing")
    watched.check()
    (tmp_path / "missing" / "a" / "b").mkdir(parents=True)
    for number in range(200):  # also within one tick of the clock
        (tmp_path / "missing" / "a" / "b" / str(number)).touch(mode=0o644)
        watched.check()
        assert open_to_others(tmp_path / "missing") == []
    (tmp_path / "missing" / "a" / "b" / "1").rename(tmp_path / "missing" / "a" / "1")
    watched.check()


def test_the_terminals_history_is_private_from_the_folder_on(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    TerminalHistory(folder).add(Scope("ada", "t1"), "hello", at=datetime.now(UTC))
    assert open_to_others(tmp_path) == []


def test_a_running_service_leaves_nothing_open(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    (folder / "recollect.db").touch(mode=0o644)
    with service(tmp_path) as running:
        for number in range(3):
            running.turn(f"My city is Oslo{number}.", wait_for_memory=True)
        assert (folder / "recollect.db-wal").exists()
        assert open_to_others(folder) == []
        exported = recollect(running, "export", "--user", "ada", "--output", str(folder / "ada.jsonl"))
        assert exported.returncode == 0, exported.stderr
        assert (folder / "ada.jsonl").stat().st_size > 0
        assert open_to_others(folder) == []
    assert open_to_others(folder) == []
