import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.memory.stores.data_dir import Owner, own_data_dir, read_owning_process
from recollect.memory.values.errors import ConfigurationError

URL = "http://127.0.0.1:8000"
OWNER = """
import sys
from pathlib import Path
from recollect.memory.stores.data_dir import own_data_dir
with own_data_dir(Path(sys.argv[1]), url=sys.argv[2]):
    print("owned", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def owner_process(path: Path) -> Generator[subprocess.Popen[str]]:
    """Another process that owns `path` until its standard input ends."""
    command = [sys.executable, "-c", OWNER, str(path), URL]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stdout.readline() == "owned\n"
        yield child


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    with own_data_dir(path, url=URL) as owner:
        assert owner == Owner(os.getpid(), URL) == read_owning_process(path)
        assert mode(path) == 0o700
        assert mode(path / "lock") == 0o600
        assert json.loads((path / "lock").read_text()) == {"pid": os.getpid(), "url": URL, "token": None}
    assert read_owning_process(path) is None


def test_a_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with own_data_dir(tmp_path, url=None):
        assert mode(tmp_path) == 0o750
        assert read_owning_process(tmp_path) == Owner(os.getpid(), None)


def test_the_owners_token_is_read_by_its_own_user_alone_and_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "lock").touch(mode=0o644)
    with own_data_dir(tmp_path, url=URL, token="hush") as owner:
        assert read_owning_process(tmp_path) == owner == Owner(os.getpid(), URL, "hush")
        assert mode(tmp_path / "lock") == 0o600
        assert "hush" not in repr(owner)
        with pytest.raises(ConfigurationError) as raised, own_data_dir(tmp_path, url=None):
            pass
        assert "hush" not in raised.value.message
    assert "hush" not in (tmp_path / "lock").read_text()


def test_an_owner_of_an_earlier_version_has_no_token(tmp_path: Path) -> None:
    with own_data_dir(tmp_path, url=URL):
        (tmp_path / "lock").write_text('{"pid": 1, "url": null}')
        assert read_owning_process(tmp_path) == Owner(1, None)


def test_a_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    with owner_process(tmp_path) as child:
        assert read_owning_process(tmp_path) == Owner(child.pid, URL)
        with pytest.raises(ConfigurationError) as raised, own_data_dir(tmp_path, url=None):
            pass
        assert raised.value.message == (
            f"DATA_DIR {tmp_path} is in use by process {child.pid} at {URL}; stop it, or set another DATA_DIR."
        )
        assert read_owning_process(tmp_path) == Owner(child.pid, URL)
    with own_data_dir(tmp_path, url=None):
        pass


def test_an_owner_without_a_url_is_named_by_its_process(tmp_path: Path) -> None:
    with (
        own_data_dir(tmp_path, url=None),
        pytest.raises(ConfigurationError, match=f"in use by process {os.getpid()}; stop it"),
        own_data_dir(tmp_path, url=None),
    ):
        pass


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    for _ in range(3):
        with owner_process(tmp_path) as child:
            os.kill(child.pid, signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
        assert json.loads((tmp_path / "lock").read_text())["pid"] == child.pid
        assert read_owning_process(tmp_path) is None
        with own_data_dir(tmp_path, url=URL) as owner:
            assert read_owning_process(tmp_path) == owner
            assert owner.pid == os.getpid()


def test_an_owner_that_ends_with_an_error_lets_go(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), own_data_dir(tmp_path, url=None):
        raise RuntimeError
    assert read_owning_process(tmp_path) is None
    assert (tmp_path / "lock").read_text() == ""


def test_looking_who_owns_it_never_costs_a_start(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as looking:
        stop = False

        def look() -> int:
            looked = 0
            while not stop:
                read_owning_process(tmp_path)
                looked += 1
            return looked

        looks = looking.submit(look)
        try:
            for _ in range(200):
                with own_data_dir(tmp_path, url=URL):
                    pass
        finally:
            stop = True
        assert looks.result() > 100


def test_one_of_many_starts_wins(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path), URL]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    # The losers end by themselves; the winner waits for its standard input.
    losers: list[subprocess.Popen[str]] = []
    while len(losers) < 3:
        losers = [child for child in children if child.poll() is not None]
    (winner,) = set(children) - set(losers)
    assert read_owning_process(tmp_path) == Owner(winner.pid, URL)
    told = [child.communicate()[1] for child in losers]
    assert winner.communicate("\n")[0] == "owned\n"
    assert all(f"in use by process {winner.pid} at {URL}" in text for text in told)


def test_nobody_owns_what_is_not_there(tmp_path: Path) -> None:
    assert read_owning_process(tmp_path) is None
    assert read_owning_process(tmp_path / "missing") is None
    assert not (tmp_path / "missing").exists()
    assert not (tmp_path / "lock").exists()


def test_a_held_lock_without_readable_text_still_counts(tmp_path: Path) -> None:
    with own_data_dir(tmp_path, url=URL):
        for text in ("", "{", "[]", '{"pid": 1}'):
            (tmp_path / "lock").write_text(text)
            assert read_owning_process(tmp_path) == Owner(None, None)
        with (
            pytest.raises(ConfigurationError, match="in use by another process; stop it"),
            own_data_dir(tmp_path, url=None),
        ):
            pass


@pytest.mark.parametrize("name", ["file", "file/below", "folder"])
def test_a_place_that_cannot_be_used_names_the_setting(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "lock").mkdir(parents=True)
    with (
        pytest.raises(ConfigurationError, match=r"DATA_DIR .* cannot be used"),
        own_data_dir(tmp_path / name, url=None),
    ):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="Nothing is unwritable for root.")
def test_a_folder_without_write_permission_names_the_setting(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="Permission denied"), own_data_dir(tmp_path, url=None):
        pass
