"""A command that the nursery started: its streams, its signals and its end, as `subprocess.Popen` has them."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self


@dataclass(frozen=True)
class Streams:
    """A command's standard input, output and error: the child's ends, and ours of those that are pipes."""

    child: tuple[int, int, int]
    ours: tuple[IO[str] | None, IO[str] | None, IO[str] | None] = (None, None, None)

    @classmethod
    def piped(cls, *, typed: bool) -> Self:
        """Make a pipe for each; without `typed`, the standard input is empty."""
        read_in, write_in = os.pipe()
        read_out, write_out = os.pipe()
        read_err, write_err = os.pipe()
        typing = os.fdopen(write_in, "w", encoding="utf-8")
        if not typed:
            typing.close()
        shown = os.fdopen(read_out, encoding="utf-8"), os.fdopen(read_err, encoding="utf-8")
        return cls((read_in, write_out, write_err), (typing if typed else None, *shown))

    @classmethod
    def to_file(cls, path: Path) -> Self:
        """Append output and errors to the file; the standard input is empty."""
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        return cls((os.open(os.devnull, os.O_RDONLY), log, os.dup(log)))

    def close_child(self) -> None:
        """Close the child's ends, which it has taken."""
        for fd in self.child:
            os.close(fd)


class Forked:
    """One started command. `answers` brings its pid, and its exit code when it has ended."""

    def __init__(self, arguments: Sequence[str], answers: socket.socket, streams: Streams) -> None:
        self.args = list(arguments)
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = streams.ours
        self._answers = answers
        self._lock = threading.Lock()
        self.pid = self._number()

    def poll(self) -> int | None:
        """Return the exit code (a signal's number negative), None while it runs."""
        with self._lock:
            if self.returncode is None and select.select([self._answers], [], [], 0)[0]:
                self.returncode = self._number()
                self._answers.close()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code."""
        if self.returncode is None and not select.select([self._answers], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def communicate(self, typed: str = "", timeout: float | None = None) -> tuple[str, str]:
        """Type the text, read all output and wait for the end; return output and errors."""
        assert self.stdout is not None
        assert self.stderr is not None
        assert not typed or self.stdin is not None
        with ThreadPoolExecutor(2) as readers:
            shown = readers.submit(self.stdout.read), readers.submit(self.stderr.read)
            if self.stdin is not None:
                with contextlib.suppress(BrokenPipeError), self.stdin:
                    self.stdin.write(typed)
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()  # or the readers would wait for ever
                raise
            told = shown[0].result(), shown[1].result()
        self.stdout.close()
        self.stderr.close()
        return told

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        """Return the next number that the keeper sends: a line."""
        line = b""
        while not line.endswith(b"\n"):
            read = self._answers.recv(1)
            assert read, "the nursery ended"
            line += read
        return int(line)
