"""Forks the commands that tests start from one process that has imported everything: a start without its imports.

Some 300 starts would otherwise import for over a second each. A forked process is as real as an executed one: it has
a pid, signals, an exit code, a folder, an environment and standard streams of its own. What it reads from them it reads
after the fork, and the process that forks opens no file and starts no thread.
"""

import atexit
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.service.support.forked import Forked, Streams

PROJECT = Path(__file__).parents[3]
START = "from recollect.api.cli.main import main; main()"
PRELOADED = (
    *("aiosqlite", "httptools", "prompt_toolkit", "pymongo", "rich.progress", "rich.table", "typer", "uvloop"),
    *("uvicorn.lifespan.off", "uvicorn.protocols.http.httptools_impl"),
    *("recollect.api.app", "recollect.api.server", "recollect.graph.workflow"),
    *("recollect.memory.providers.openai.provider", "recollect.memory.providers.openai.chat"),
    *("recollect.memory.providers.openai.embeddings", "recollect.memory.stores.edge.collection"),
)
"""All that is slow to import, but for `recollect.api.cli`: its modules look at the terminal when they are imported."""


class Nursery:
    """Starts the process that has imported everything, and asks it for commands."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            script = f"from tests.service.support.nursery import serve; serve({theirs.fileno()})"
            self.process = subprocess.Popen(
                [sys.executable, "-c", script],
                cwd=PROJECT,
                # A fork loses the threads that a library started when it was imported.
                env={**os.environ, "PYTHONPATH": str(PROJECT), "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        assert self._control.recv(1), "the nursery did not start"

    def close(self) -> None:
        """Let the process end; what it has forked goes on."""
        self._control.close()
        self.process.wait()

    def start(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], streams: Streams, how: str = "fork"
    ) -> Forked:
        """Start `recollect` with these arguments.

        `how`: "fork"; "terminal", where its standard input becomes its own terminal; or "execute", by an interpreter of
        its own.
        """
        ours, theirs = socket.socketpair()
        request = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env), "how": how}
        with theirs, self._lock:
            socket.send_fds(self._control, [b"1"], [theirs.fileno(), *streams.child])
        streams.close_child()
        ours.sendall(json.dumps(request).encode() + b"\n")
        return Forked(arguments, ours, streams)


@cache
def nursery() -> Nursery:
    """Return this test process's nursery, started when first asked for; it ends with the test process."""
    made = Nursery()
    atexit.register(made.close)
    return made


def serve(control: int) -> None:
    """Fork a keeper for each request until the other side is closed."""
    for name in PRELOADED:
        importlib.import_module(name)
    _import_routes()
    assert threading.active_count() == 1, threading.enumerate()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    with socket.socket(fileno=control) as requests:
        requests.sendall(b"1")
        while True:
            message, fds, _, _ = socket.recv_fds(requests, 1, 4)
            if not message:
                return
            if os.fork() == 0:
                requests.close()
                _keep(fds[0], fds[1:])
            for fd in fds:
                os.close(fd)


def _import_routes() -> None:
    """Import the routes that a service would import when it is first asked for them."""
    from recollect.api.late_routes import GROUPS, PAGES

    for group in (*GROUPS, PAGES):
        for name in group.modules:
            importlib.import_module(f"recollect.api.{name}")


def _keep(answers: int, streams: Sequence[int]) -> None:
    """Fork the command, and tell its pid and how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=answers) as asked:
        request = json.loads(asked.makefile("r", encoding="utf-8").readline())
        pid = os.fork()
        if pid == 0:
            asked.close()
            _become(request, streams)
        for fd in streams:
            os.close(fd)  # so that a reader sees the end of the output when the command ends
        asked.sendall(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        asked.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    """Be the command, and end as the interpreter would."""
    code = 1
    try:
        _take_place(request, streams)
        if request["how"] == "execute":
            os.execve(sys.executable, [sys.executable, "-c", START, *request["arguments"]], request["env"])
        code = _run()
    except BaseException:
        traceback.print_exc()
    finally:
        # The interpreter waits for threads and calls what waits for its end; `os._exit` does neither.
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
        sys.stdout.flush()
        os._exit(code)


def _take_place(request: dict[str, Any], streams: Sequence[int]) -> None:
    """Take the standard streams, the folder, the environment and the arguments."""
    for fd, stream in enumerate(streams):
        os.dup2(stream, fd)
        os.close(stream)
    if request["how"] == "terminal":
        _take_terminal()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["-c", *request["arguments"]]
    sys.path[:0] = ["", *os.environ["PYTHONPATH"].split(os.pathsep)]
    sys.stdin = _text(0, "r")
    sys.stdout = _text(1, "w")
    sys.stderr = _text(2, "w")


def _take_terminal() -> None:
    """Make the standard input this process's own terminal, so that Ctrl-C is its signal."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _text(fd: int, mode: str) -> io.TextIOWrapper:
    """Open a standard stream as the interpreter does with PYTHONUNBUFFERED."""
    raw = io.FileIO(fd, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    errors = ("surrogateescape", "surrogateescape", "backslashreplace")[fd]
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=True, write_through=mode == "w")


def _run() -> int:
    """Run the command; return its exit code."""
    from recollect.api.cli.main import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 0
