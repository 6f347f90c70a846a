"""What users typed at the terminal, for its line editor to offer again: one file a user in DATA_DIR.

A data holder: a user's file goes with the user, and the lines that were typed in a thread go with the thread. One JSON
object a line, oldest first: `{"at": epoch ms, "thread_id", "line"}`.
"""

import hashlib
import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

import portalocker

from memory.scope import Scope
from memory.times import to_ms

MOST_LINES = 2_000
_FOLDER = "terminal"


def history_path(data_dir: Path, user_id: str) -> Path:
    """The user's file. Its name is a hash, so that no listing of the folder tells who the users are."""
    return data_dir / _FOLDER / f"{hashlib.sha256(user_id.encode()).hexdigest()}.jsonl"


@dataclass(frozen=True, slots=True)
class Typed:
    """One line that was typed; `at` is epoch milliseconds."""

    at: int
    thread_id: str
    line: str


@dataclass(frozen=True, slots=True)
class TerminalHistory:
    """The lines of all users in one DATA_DIR. Calls read and write files: an event loop makes them in a thread."""

    data_dir: Path

    def add(self, scope: Scope, line: str, *, at: datetime) -> None:
        """Keep a line. The file has mode 0600, and its folder 0700.

        Raises:
            OSError: the file cannot be written.
        """
        path = history_path(self.data_dir, scope.user_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)) as file:
            # A process that was killed while it wrote may have left a part of a line.
            begins = "" if file.read()[-1:] in {"", "\n"} else "\n"
            file.write(begins + _text([Typed(to_ms(at), scope.thread, line)]))

    def lines(self, scope: Scope) -> list[Typed]:
        """What the user typed, in the thread where the scope names one, oldest first."""
        return [typed for typed in self._read(scope.user_id) if scope.thread_id in (None, typed.thread_id)]

    def trim(self, user_id: str, *, since: datetime | None) -> None:
        """Drop what was typed before `since`, and all but the last `MOST_LINES`."""
        least = to_ms(since) if since is not None else 0

        def kept(lines: Sequence[Typed]) -> Sequence[Typed]:
            return [typed for typed in lines if typed.at >= least][-MOST_LINES:]

        self._rewrite(user_id, kept)

    def erase(self, scope: Scope) -> int:
        """Drop what the user typed, or typed in the thread; how many lines that were."""
        if scope.thread_id is not None:
            return self._rewrite(scope.user_id, lambda lines: [one for one in lines if one.thread_id != scope.thread])
        count = len(self.lines(scope))
        history_path(self.data_dir, scope.user_id).unlink(missing_ok=True)
        return count

    def remaining(self, scope: Scope) -> int:
        """How many lines of the user, or of the thread, are there."""
        return len(self.lines(scope))

    def _read(self, user_id: str) -> list[Typed]:
        try:
            with _locked(os.open(history_path(self.data_dir, user_id), os.O_RDWR)) as file:
                return _parsed(file)
        except FileNotFoundError:
            return []

    def _rewrite(self, user_id: str, keep: Callable[[Sequence[Typed]], Sequence[Typed]]) -> int:
        """Keep some of the lines, in place; how many went."""
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
    """The open file under a lock of its own: two terminals of one user may be open."""
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
    """The file's lines; one that a killed process left in part is no line."""
    found = list[Typed]()
    for line in file.read().splitlines():
        try:
            said = json.loads(line)
            found.append(Typed(int(said["at"]), str(said["thread_id"]), str(said["line"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found
