"""Opens DATA_DIR=:memory:, a private temporary folder that is removed at closing or at the process's exit.

A killed process leaves its folder behind. The next process that makes such a folder removes it: the folder's name holds
the id of its process, and its free lock shows that nobody has it open.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from recollect.memory.stores.data_dir import read_owning_process
from recollect.memory.values.errors import ConfigurationError

_PREFIX = "recollect-memory-"
_open: set[Path] = set()


@contextmanager
def private_dir() -> Generator[Path]:
    """Make a folder of mode 0700 and remove it at exit, also where the process ends without leaving this block.

    Raises:
        ConfigurationError: no temporary folder can be made.
    """
    remove_left_over()
    try:
        path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ConfigurationError(f"DATA_DIR=:memory: finds no temporary folder ({why}); set TMPDIR.") from error
    _open.add(path)
    try:
        yield path
    finally:
        _open.discard(path)
        shutil.rmtree(path, ignore_errors=True)


def remove_left_over() -> None:
    """Remove the folders that killed processes of this user left."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if path not in _open and _is_left(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_left(path: Path) -> bool:
    """Tell whether the folder is this user's, its process is gone, and nobody holds its lock."""
    try:
        if path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.getuid():
            return False
        return not _is_alive(path.name.removeprefix(_PREFIX).partition("-")[0]) and read_owning_process(path) is None
    except (OSError, ConfigurationError):
        return False


def _is_alive(pid: str) -> bool:
    """Tell whether the process `pid` runs; a text that is no number names none."""
    if not pid.isdigit():
        return True
    with contextlib.suppress(PermissionError):
        try:
            os.kill(int(pid), 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


@atexit.register
def _remove_all() -> None:
    for path in list(_open):
        shutil.rmtree(path, ignore_errors=True)
