"""The folder of a sync: reads and writes files safely, and keeps their hashes of the last sync.

Links are not followed, so that nothing outside the folder is read or written. Files are replaced whole.
"""

import json
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath

import portalocker
from pydantic import BaseModel, ValidationError

from recollect.memory.transfer.file_names import file_name
from recollect.memory.values.errors import ConfigurationError

STATE = ".recollect-sync.json"
_LOCK = ".recollect-sync.lock"
CONFLICT = ".conflict.md"
MOST_FILE_BYTES = 4_000_000


def file_hash(content: bytes) -> str:
    """Return the hash by which files are compared."""
    return sha256(content).hexdigest()


def kind_of_file(path: str) -> str | None:
    """Return the kind of a file by its path: "fact", "summary" or "turn"; None for others."""
    parts = PurePosixPath(path).parts
    if not path.endswith(".md") or parts[-1].startswith("."):
        return None
    if len(parts) == 3 and parts[1] == "turns":
        return "turn"
    if path.endswith(CONFLICT):
        return None
    if len(parts) == 2 and parts[0] == "facts":
        return "fact"
    return "summary" if len(parts) == 2 and parts[1] == "summary.md" else None


def conflict_of(path: str) -> str:
    """Return the path beside the file that holds the memory's version."""
    return path.removesuffix(".md") + CONFLICT


class FileState(BaseModel):
    """A file as the last sync left it: the hash of its content, and the id of what it holds. No text."""

    hash: str
    id: str


class SyncState(BaseModel):
    """The last sync of a user's folder."""

    user_id: str
    files: dict[str, FileState] = {}


@dataclass
class Folder:
    """The files of one user, `<root>/<user>/…`; paths are relative to it, with "/" between their parts."""

    root: Path
    user_id: str
    _seen: dict[str, tuple[tuple[int, int, int], str]] = field(
        init=False, default_factory=dict[str, tuple[tuple[int, int, int], str]]
    )
    _kept: bytes = field(init=False, default=b"")

    @property
    def base(self) -> Path:
        """The user's folder."""
        return self.root / file_name(self.user_id)

    @contextmanager
    def held(self) -> Generator[None]:
        """Make the folder where it is missing, and be the only sync that works in it.

        Raises:
            ConfigurationError: it cannot be written, is a link, or another sync is at work there.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            if self.base.is_symlink():
                raise ConfigurationError(f"{self.base} is a link; name the folder that it leads to.")
            self.base.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(self.base / _LOCK, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                try:
                    portalocker.lock(file, portalocker.LOCK_EX | portalocker.LOCK_NB)
                except portalocker.LockException:
                    raise ConfigurationError(f"Another sync is at work in {self.base}; let it end.") from None
                yield
        except OSError as error:
            raise ConfigurationError(f"{self.root} cannot be used ({error.strerror}).") from None

    def state(self) -> SyncState:
        """Return the state of the last sync; an empty one before the first.

        Raises:
            ConfigurationError: it is another user's, or damaged.
        """
        try:
            state = SyncState.model_validate_json((self.base / STATE).read_bytes())
        except FileNotFoundError:
            return SyncState(user_id=self.user_id)
        except ValidationError:
            raise ConfigurationError(
                f"{self.base / STATE} is damaged; delete it to sync as for the first time."
            ) from None
        if state.user_id != self.user_id:
            raise ConfigurationError(f"{self.base} belongs to another user; sync into another folder.")
        return state

    def keep(self, state: SyncState) -> None:
        """Write the state, if it has changed."""
        text = json.dumps(state.model_dump(), indent=1, sort_keys=True).encode()
        if text != self._kept:
            self.write(STATE, text)
            self._kept = text

    def files(self) -> dict[str, str]:
        """Return the hashes of the files that may be facts, summaries and turns. Unchanged files are not read again."""
        found: dict[str, str] = {}
        for path, known in self._walk():
            if path in self._seen and self._seen[path][0] == known:
                found[path] = self._seen[path][1]
                continue
            content = self.read(path)
            if content is not None:
                found[path] = file_hash(content)
                self._seen[path] = (known, found[path])
        return found

    def has(self, path: str) -> bool:
        """Tell whether the file exists."""
        return self.read(path) is not None

    def read(self, path: str) -> bytes | None:
        """Return the file's content; None where it is missing, a link, or too long for one of ours."""
        try:
            descriptor = os.open(self.base / path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(MOST_FILE_BYTES + 1)
        return content if len(content) <= MOST_FILE_BYTES else None

    def write(self, path: str, content: bytes) -> None:
        """Write the file, replacing an existing one."""
        target = self.base / path
        for parent in reversed(list(target.parents)[: len(PurePosixPath(path).parts) - 1]):
            if parent.is_symlink():
                raise ConfigurationError(f"{parent} is a link; nothing is written behind links.")
            parent.mkdir(mode=0o700, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".", suffix="~")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)

    def move(self, path: str, to: str) -> None:
        """Rename the file."""
        (self.base / path).replace(self.base / to)

    def remove(self, path: str) -> None:
        """Remove the file, and its folder where that is empty then."""
        target = self.base / path
        target.unlink(missing_ok=True)
        for parent in list(target.parents)[: len(PurePosixPath(path).parts) - 1]:
            try:
                parent.rmdir()
            except OSError:
                return

    def _walk(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        for folder, folders, names in os.walk(self.base, followlinks=False):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                file = Path(folder) / name
                path = file.relative_to(self.base).as_posix()
                if kind_of_file(path) is None or file.is_symlink():
                    continue
                try:
                    told = file.stat()
                except FileNotFoundError:
                    continue
                yield path, (told.st_mtime_ns, told.st_size, told.st_ino)
