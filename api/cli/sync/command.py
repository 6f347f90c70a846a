"""`recollect sync`: syncs a folder of Markdown files with a user's memory."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.owner import OwnerRefused
from recollect.api.cli.sync.folder import STATE, Folder
from recollect.api.cli.sync.memory_side import MemorySide
from recollect.api.cli.sync.sync_pass import FactsPass, PassResult, TurnsPass
from recollect.api.cli.terminal.connection import connection
from recollect.api.cli.terminal.plain_text import safe

POLL_SECONDS = 3.0
"""The interval of asking the memory while nothing happens in the folder."""
DEBOUNCE_SECONDS = 0.3
MOST_PASSES = 3
"""The most passes of one sync, because an edit may change more than its own file."""


def sync_folder(told: CommandContext, folder: Path, user_id: str, *, watch: bool, force: bool, url: str | None) -> int:
    """Sync once, or go on until interrupted; return the exit code: 1 where something waits for a person.

    Raises:
        ConfigurationError: the folder cannot be used.
        NotThisMemory: it would undo everything on one side.
        Refused: the service cannot be reached, or refused it.
    """
    files = Folder(folder.expanduser().absolute(), user_id)
    with files.held(), connection(told, url, may_be_new=True) as service:
        syncing = _Syncing(files, MemorySide(service.client, user_id), force)
        code = syncing.once()
        if watch:
            with _stopping() as stop:
                code = syncing.go_on(stop)
    return code


@dataclass
class _Syncing:
    folder: Folder
    memory: MemorySide
    force: bool
    _console: Console = field(init=False, default_factory=lambda: Console(soft_wrap=True))
    _seen: dict[str, Any] = field(init=False, default_factory=dict[str, Any])
    _told: set[str] = field(init=False, default_factory=set[str])

    def once(self) -> int:
        """Run passes until one changes nothing in the memory."""
        outcome = self._pass()
        for _ in range(MOST_PASSES - 1):
            if not outcome.has_edited:
                break
            outcome = self._pass()
        return 1 if outcome.open else 0

    def go_on(self, stop: threading.Event) -> int:
        """Run a pass at each change in the folder, and every few seconds; return the last one's exit code."""
        from watchfiles import watch

        code = 0
        self._tell("Watching; interrupt to end.")
        changes = watch(
            self.folder.base,
            watch_filter=lambda _, path: Path(path).suffix == ".md" and Path(path).name != STATE,
            debounce=int(DEBOUNCE_SECONDS * 1000),
            rust_timeout=int(POLL_SECONDS * 1000),
            yield_on_timeout=True,
            stop_event=stop,
            raise_interrupt=False,
        )
        for _ in changes:
            try:
                code = self.once()
            except OwnerRefused as error:
                # A service that is down now may be back at the next pass.
                self._tell_once(error.message)
                code = 1
        return code

    def _pass(self) -> PassResult:
        outcome, state = PassResult(), self.folder.state()
        try:
            there = FactsPass(self.folder, self.memory, state, self.force).run(outcome)
            TurnsPass(self.folder, self.memory, state, self._seen).run(there, outcome)
        finally:
            self.folder.keep(state)
            for sentence in outcome.done:
                self._tell(sentence)
        for sentence in outcome.open:
            self._tell_once(sentence)
        self._told &= set(outcome.open)
        return outcome

    def _tell_once(self, sentence: str) -> None:
        """Print a waiting conflict once, when it begins to wait."""
        if sentence not in self._told:
            self._told.add(sentence)
            self._tell(sentence)

    def _tell(self, sentence: str) -> None:
        self._console.print(safe(sentence), markup=False, highlight=False)


@contextmanager
def _stopping() -> Generator[threading.Event]:
    """Provide an event that an interrupt, or a request to end, sets."""
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
