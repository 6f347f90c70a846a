"""DATA_DIR has one owner process, which holds an exclusive lock on a file with its id, its URL and its token.

The operating system holds the lock and frees it when the owner is killed. The file's text is for people and commands;
it counts for nothing once the lock is free. The file is never deleted: two processes could then each hold a lock on a
file of that name. Only the user who runs the owner may read it, because whoever knows the token is the administrator.
All other files below DATA_DIR belong to that user alone, too.
"""

import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, field
from pathlib import Path
from typing import IO

import portalocker

from recollect.memory.stores.private_folder import make_folder, make_private
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen

_LOCK = "lock"
_PRIVATE = 0o600
# A command that reads who the owner is holds a shared lock for an instant; a start retries rather than fail on it.
_TRIES, _PAUSE_SECONDS = 10, 0.02


@frozen
class Owner:
    """Names the process that holds DATA_DIR and its URL; a field is None where the process has not written it yet.

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
        try:
            make_private(path)
        except OSError as error:
            raise _unusable(path, error) from error
        owner = Owner(os.getpid(), url, token)
        try:
            _write(file, json.dumps(asdict(owner)))
            yield owner
        finally:
            _write(file, "")
            portalocker.unlock(file)


def read_owning_process(path: Path) -> Owner | None:
    """Return the process that owns `path` now, or None if none does (a killed owner's text does not count).

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
            make_folder(path)
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
