"""Runs `recollect chat` in a terminal of its own, and types into it as a person would."""

import contextlib
import os
import re
import termios
from types import TracebackType
from typing import Any, Self

from pexpect import EOF, TIMEOUT  # pyright: ignore[reportMissingTypeStubs]
from pexpect.fdpexpect import fdspawn  # pyright: ignore[reportMissingTypeStubs]

from tests.service.support.forked import Streams
from tests.service.support.nursery import PROJECT, nursery
from tests.service.support.running import Service

SECONDS = 60
READY = "\x1b[?2004h"
"""The sequence that the line editor writes when it begins to read a line."""
_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")


class Terminal:
    """One command in a terminal of 200 columns, beside a service or without one, in the service's folder."""

    def __init__(self, running: Service, *arguments: str, **environment: str) -> None:
        master, slave = os.openpty()
        termios.tcsetwinsize(slave, (60, 200))
        settings = {"PYTHONPATH": str(PROJECT), "DATA_DIR": str(running.data_dir), **running.settings}
        terminal = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "LANG": "C.UTF-8"}
        environment = {**os.environ, **settings, **terminal, **environment}
        streams = Streams((slave, os.dup(slave), os.dup(slave)))
        self.process = nursery().start(arguments, cwd=running.folder, env=environment, streams=streams, how="terminal")
        self._spawn: Any = fdspawn(master, encoding="utf-8", codec_errors="replace", timeout=SECONDS)

    def ready(self) -> str:
        """Wait until a line can be typed; return the output until then, without styles."""
        self._spawn.expect_exact(READY)
        return self.shown

    def sees(self, text: str) -> str:
        """Wait until the text is shown; return the output before it since the last wait."""
        self._spawn.expect_exact(text)
        return self.shown

    def shows(self, text: str, *, seconds: float) -> bool:
        """Tell whether the text is shown within so many seconds."""
        return self._spawn.expect_exact([text, TIMEOUT], timeout=seconds) == 0

    @property
    def shown(self) -> str:
        """Return the output before the awaited text, without styles."""
        return _SEQUENCES.sub("", str(self._spawn.before))

    @property
    def raw(self) -> str:
        """Return the output before the awaited text, as the terminal got it."""
        return str(self._spawn.before)

    def press(self, keys: str) -> None:
        """Press keys, and nothing more."""
        self._spawn.send(keys)

    def enter(self, line: str) -> str:
        """Type a line and wait until the next can be typed; return the output meanwhile, without styles."""
        self.press(f"{line}\r")
        return self.ready()

    def end(self) -> int:
        """Press Ctrl-D and wait for the end; return the exit code."""
        self.press("\x04")
        return self.ended()

    def ended(self) -> int:
        """Wait until the process has ended; return its exit code."""
        with contextlib.suppress(OSError):  # what Linux says of a terminal that nobody has open any more
            self._spawn.expect(EOF)
        return self.process.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        self._spawn.close()
