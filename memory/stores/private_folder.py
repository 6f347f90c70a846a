"""Keeps our files for their owner alone: folders get mode 0700 and files 0600, whatever the folders above allow."""

import logging
import os
import stat
import time
from pathlib import Path

log = logging.getLogger(__name__)

_OTHERS = 0o077
"""The rights of the group and of everybody else."""
_TICK = 50_000_000
"""Nanoseconds: what changes twice within a tick of the file system's clock may say one time for both."""
_SECONDS = 1.0
"""How often a folder that is written is checked by `PrivateFolder.check_at_times`."""


def make_folder(path: Path) -> None:
    """Make the folder and its missing parents with mode 0700.

    Raises:
        OSError: the system refuses.
    """
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def make_private(path: Path) -> None:
    """Remove other users' rights from everything below the folder, whose own mode stays. It blocks.

    Links are not followed. Another user's files stay as they are, and the log says so.
    """
    foreign = 0
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            foreign += not _take_rights(f"{folder}/{name}")
    if foreign:
        log.warning("files below DATA_DIR are another user's", extra={"action": "foreign_files", "files": foreign})


class PrivateFolder:
    """A folder in which a library makes files of any mode; `check` makes them private again.

    The folder itself is private from the start: nobody else reaches a file before `check` has seen it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[int, list[str]]] = {}
        self._checked = -_SECONDS

    def check_at_times(self) -> None:
        """Check, unless it was done a second ago: under load a check takes 0.3 ms, and a turn writes several times."""
        if time.monotonic() - self._checked >= _SECONDS:
            self.check()

    def check(self) -> None:
        """Make the content of each changed folder private; about 0.1 ms where none has changed. It blocks."""
        self._checked = time.monotonic()
        now, before, self._known = time.time_ns(), self._known, {}
        folders = [str(self._path)]
        while folders:
            folder = folders.pop()
            try:
                changed = os.stat(folder).st_mtime_ns  # noqa: PTH116  # a path object for each would take as long again
                known = before.get(folder)
                below = known[1] if known is not None and known[0] == changed else _look_into(folder)
            except FileNotFoundError:  # its library removed it meanwhile
                continue
            self._known[folder] = (changed if changed < now - _TICK else 0, below)
            folders += below


def _look_into(folder: str) -> list[str]:
    """Make the folder and its entries private, and return the folders in it."""
    _take_rights(folder)
    below = list[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            else:
                _take_rights(entry.path)
    return below


def _take_rights(path: str) -> bool:
    """Make the file or folder private; return False where it belongs to another user."""
    try:
        found = os.lstat(path)
        if not stat.S_ISLNK(found.st_mode) and found.st_mode & _OTHERS:
            os.chmod(path, stat.S_IMODE(found.st_mode) & ~_OTHERS)  # noqa: PTH101  # as above
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    return True
