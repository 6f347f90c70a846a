"""`recollect sync`: a folder of Markdown files and a user's memory, kept the same."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from api.commands.connection import connection
from api.commands.owner import Refused
from api.commands.plain_text import safe
from api.commands.sync_folder import STATE, Folder
from api.commands.sync_memory import MemorySide
from api.commands.sync_pass import FactsPass, Outcome, TurnsPass
from api.commands.told import Told

POLL_SECONDS = 3.0
"""How often the memory is asked, where nothing happens in the folder."""
DEBOUNCE_SECONDS = 0.3
MOST_PASSES = 3
"""An edit changes more than its own file now and then: so often a sync looks again."""


def sync_folder(told: Told, folder: Path, user_id: str, *, watch: bool, force: bool, url: str | None) -> int:
    """Sync once, or go on until interrupted; the exit code: 1 where something waits for a person.

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
        """Passes, until one changes nothing in the memory."""
        outcome = self._pass()
        for _ in range(MOST_PASSES - 1):
            if not outcome.has_edited:
                break
            outcome = self._pass()
        return 1 if outcome.open else 0

    def go_on(self, stop: threading.Event) -> int:
        """Pass after pass: when something happens in the folder, and every few seconds. The last one's exit code."""
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
            except Refused as error:
                # A service that is away now may be back at the next pass.
                self._tell_once(error.message)
                code = 1
        return code

    def _pass(self) -> Outcome:
        outcome, state = Outcome(), self.folder.state()
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
        """What waits is told when it begins to."""
        if sentence not in self._told:
            self._told.add(sentence)
            self._tell(sentence)

    def _tell(self, sentence: str) -> None:
        self._console.print(safe(sentence), markup=False, highlight=False)


@contextmanager
def _stopping() -> Generator[threading.Event]:
    """An event that an interrupt, or a request to end, sets."""
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
