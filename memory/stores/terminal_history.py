"""Keeps the lines that users typed at the terminal, for its line editor: one file per user in DATA_DIR.

It is a data holder: erasing a user removes the file, and erasing a thread removes the lines typed in it. A file holds
one JSON object per line, oldest first: `{"at": epoch ms, "thread_id", "line"}`.
"""

import hashlib
import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import IO

import portalocker
from typing_extensions import override

from recollect.memory.erasure.data_holders import TypedLinesFiles
from recollect.memory.stores.private_folder import make_folder
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import to_ms

MOST_LINES = 2_000
_FOLDER = "terminal"


def history_path(data_dir: Path, user_id: str) -> Path:
    """Return the path of the user's file. Its name is a hash, so that a listing of the folder names no users."""
    return data_dir / _FOLDER / f"{hashlib.sha256(user_id.encode()).hexdigest()}.jsonl"


@frozen
class Typed:
    """A typed line; `at` is in epoch milliseconds."""

    at: int
    thread_id: str
    line: str


@frozen
class TerminalHistory(TypedLinesFiles):
    """Holds the typed lines of all users in one DATA_DIR. Its calls block: an event loop makes them in a thread."""

    data_dir: Path

    def add(self, scope: Scope, line: str, *, at: datetime) -> None:
        """Store `line`. The file has mode 0600, and its folder 0700.

        Raises:
            OSError: the file cannot be written.
        """
        path = history_path(self.data_dir, scope.user_id)
        make_folder(path.parent)
        with _locked(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as file:
            # A process that was killed while it wrote may have left part of a line: begin a new one.
            begins = "" if file.read()[-1:] in {"", "\n"} else "\n"
            file.write(begins + _text([Typed(to_ms(at), scope.thread, line)]))

    def lines(self, scope: Scope) -> list[Typed]:
        """Return the lines that the user typed, oldest first; only those of the thread where `scope` names one."""
        return [typed for typed in self._read(scope.user_id) if scope.thread_id in (None, typed.thread_id)]

    @override
    def trim(self, user_id: str, *, since: datetime | None) -> None:
        """Remove the lines typed before `since`, and all but the last `MOST_LINES`."""
        least = to_ms(since) if since is not None else 0

        def kept(lines: Sequence[Typed]) -> Sequence[Typed]:
            return [typed for typed in lines if typed.at >= least][-MOST_LINES:]

        self._rewrite(user_id, kept)

    @override
    def erase(self, scope: Scope) -> int:
        """Remove the lines of the user, or of the thread, and return their number."""
        if scope.thread_id is not None:
            return self._rewrite(scope.user_id, lambda lines: [one for one in lines if one.thread_id != scope.thread])
        count = len(self.lines(scope))
        history_path(self.data_dir, scope.user_id).unlink(missing_ok=True)
        return count

    @override
    def remaining(self, scope: Scope) -> int:
        """Return how many lines of the user, or of the thread, are stored."""
        return len(self.lines(scope))

    def _read(self, user_id: str) -> list[Typed]:
        try:
            with _locked(os.open(history_path(self.data_dir, user_id), os.O_RDWR)) as file:
                return _parsed(file)
        except FileNotFoundError:
            return []

    def _rewrite(self, user_id: str, keep: Callable[[Sequence[Typed]], Sequence[Typed]]) -> int:
        """Rewrite the file in place with the lines that `keep` chooses; return how many were removed."""
        try:
            with _locked(os.open(history_path(self.data_dir, user_id), os.O_RDWR)) as file:
                before = _parsed(file)
                kept = keep(before)
                if len(kept) < len(before):
                    file.seek(0)
                    file.truncate()
                    file.write(_text(kept))
                return len(before) - len(kept)
        except FileNotFoundError:
            return 0


@contextmanager
def _locked(descriptor: int) -> Generator[IO[str]]:
    """Lock the file and yield it open: one user may have two terminals open."""
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        portalocker.lock(file, portalocker.LOCK_EX)
        try:
            yield file
        finally:
            file.flush()
            portalocker.unlock(file)


def _text(lines: Sequence[Typed]) -> str:
    return "".join(f"{json.dumps(asdict(typed))}\n" for typed in lines)


def _parsed(file: IO[str]) -> list[Typed]:
    """Return the file's lines, without one that a killed process left incomplete."""
    found = list[Typed]()
    for line in file.read().splitlines():
        try:
            said = json.loads(line)
            found.append(Typed(int(said["at"]), str(said["thread_id"]), str(said["line"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found
