"""DATA_DIR's one owner: an exclusive lock on a file that names the process, its URL and the token it takes.

The operating system holds the lock, so a killed owner leaves none behind; the file's text is only what people and
commands read, and counts for nothing once the lock is free. The file itself is never deleted: two processes could then
each hold a lock on "it". Only its owner's own user may read it: whoever knows the token is the administrator.
"""

import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

import portalocker

from memory.errors import ConfigurationError

_LOCK = "lock"
_PRIVATE = 0o600
# A command that looks who the owner is holds a shared lock for an instant; a start tries again rather than fail on it.
_TRIES, _PAUSE_SECONDS = 10, 0.02


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds DATA_DIR, and the URL it serves at, if any; None where it has not said so yet.

    `token` makes whoever sends it to that URL from this machine the administrator.
    """

    pid: int | None
    url: str | None
    token: str | None = field(default=None, repr=False)


@contextmanager
def own_data_dir(path: Path, *, url: str | None, token: str | None = None) -> Generator[Owner]:
    """Hold `path` (created with mode 0700 if missing) as its only owner, until exit or the process's end.

    `token` is what the process takes from this machine's administrator. Blocks for up to 0.2 s, so an event loop calls
    it in a thread.

    Raises:
        ConfigurationError: another process owns it (the message names it), or it cannot be written.
    """
    with _open(path) as file:
        _take(file, path)
        _make_private(path)
        owner = Owner(os.getpid(), url, token)
        try:
            _write(file, json.dumps(asdict(owner)))
            yield owner
        finally:
            _write(file, "")
            portalocker.unlock(file)


def read_owner(path: Path) -> Owner | None:
    """The process that owns `path` now, or None if none does (what a killed owner wrote does not count).

    Raises:
        ConfigurationError: the lock file cannot be opened.
    """
    try:
        with (path / _LOCK).open("r", encoding="utf-8") as file:
            try:
                portalocker.lock(file, portalocker.LOCK_SH | portalocker.LOCK_NB)
            except portalocker.AlreadyLocked:
                return _read(file)
            portalocker.unlock(file)
            return None
    except portalocker.LockException as error:
        raise _unlockable(path) from error
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from error


def _open(path: Path) -> IO[str]:
    try:
        if not path.is_dir():
            path.mkdir(mode=0o700, parents=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
        return os.fdopen(os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, _PRIVATE), "r+", encoding="utf-8")
    except OSError as error:
        raise _unusable(path, error) from error


def _take(file: IO[str], path: Path) -> None:
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        try:
            portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.AlreadyLocked:
            continue
        except portalocker.LockException as error:
            raise _unlockable(path) from error
        return
    owner = _read(file)
    process = f"process {owner.pid}" if owner.pid else "another process"
    at = f" at {owner.url}" if owner.url else ""
    raise ConfigurationError(f"DATA_DIR {path} is in use by {process}{at}; stop it, or set another DATA_DIR.")


def _make_private(path: Path) -> None:
    """A lock file that was there may have another mode than this code gives it."""
    try:
        (path / _LOCK).chmod(_PRIVATE)
    except OSError as error:
        raise _unusable(path, error) from error


def _write(file: IO[str], text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()


def _read(file: IO[str]) -> Owner:
    file.seek(0)
    try:
        said = json.loads(file.read())
        return Owner(said["pid"], said["url"], said.get("token"))
    except (ValueError, KeyError, TypeError):  # the owner is about to write it
        return Owner(None, None)


def _unusable(path: Path, error: OSError) -> ConfigurationError:
    why = error.strerror or type(error).__name__
    return ConfigurationError(f"DATA_DIR {path} cannot be used ({why}); make it writable, or set another DATA_DIR.")


def _unlockable(path: Path) -> ConfigurationError:
    return ConfigurationError(f"DATA_DIR {path} is on a file system without locks; set another DATA_DIR.")
