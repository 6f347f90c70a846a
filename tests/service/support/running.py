"""A real service process for tests: started as a user would, spoken to over HTTP, killed or stopped at will."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.service.support.forked import Forked, Streams
from tests.service.support.nursery import PROJECT, nursery

START_SECONDS = 20.0
_PORTS_EACH = 3_000
_ports = count(20_000 + _PORTS_EACH * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")))


def free_port() -> int:
    """Return a loopback port that nobody listens on right now, and that no other test is given.

    The system gives ports from 32,768 on to clients, and would give a stopped service's to somebody else.
    """
    for port in _ports:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("unreachable")


class Service:
    """One `recollect serve` process. Its folder is also its working directory, so that no `.env` reaches it.

    Set `arguments` before the start for another command. Set `executed` before it, and an interpreter of its own runs
    it, as for a user; else it is forked.
    """

    def __init__(self, folder: Path, *, port: int | str | None = None, **settings: str) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.port = int(port) if port else free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = folder / "service.log"
        self.http = httpx.Client(base_url=self.url, timeout=60)
        self.process: Forked | None = None
        self.executed = False
        self.arguments = ["serve"]
        self.settings = settings

    def start(self, *, wait: bool = True) -> Self:
        """Start the process; with `wait`, until `/health` answers."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(PROJECT),
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "DATA_DIR": str(self.data_dir),
            **self.settings,
        }
        how = "execute" if self.executed else "fork"
        streams = Streams.to_file(self.log_file)
        self.process = nursery().start(self.arguments, cwd=self.folder, env=environment, streams=streams, how=how)
        if wait:
            self.wait_until_up()
        return self

    def wait_until_up(self) -> None:
        """Wait until `/health` answers; fail with the log where the process ends or takes too long."""
        assert self.process is not None
        wait_until_up(self.process, lambda: self.http.get("/health"), log=lambda: self.log, seconds=START_SECONDS)

    @property
    def log(self) -> str:
        """Return all that its processes have logged."""
        return self.log_file.read_text(encoding="utf-8", errors="replace") if self.log_file.exists() else ""

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self, *, seconds: float = 30) -> int:
        """Send SIGTERM and wait for the end; return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def turn(self, message: str, *, user: str = "ada", thread: str = "t1", **fields: Any) -> dict[str, Any]:
        """Run one turn that must succeed; return the answer's JSON."""
        body = {"user_id": user, "thread_id": thread, "message": message, **fields}
        answer = self.http.post("/api/agent", json=body)
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """Send a GET that must succeed; return the answer's JSON."""
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    def settled(self, turn_id: str, *, user: str = "ada", seconds: float = 20) -> dict[str, Any]:
        """Wait until the turn's update is no longer pending; return the turn."""
        deadline = time.monotonic() + seconds
        while True:
            turn = self.get(f"/api/turns/{turn_id}", user_id=user)
            if turn["memory"]["update"]["status"] != "pending":
                return turn
            assert time.monotonic() < deadline, f"still pending: {turn}\n{self.log}"
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()


@contextmanager
def service(folder: Path, **settings: str) -> Generator[Service]:
    """Run a service with these settings (environment variables), and stop it at the end."""
    with Service(folder, **settings) as running:
        yield running


def model_settings(url: str, **more: str) -> dict[str, str]:
    """Return the settings that point a service at a FakeOpenAI."""
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "test-key", "CHAT_MODEL": "fake-chat", **more}


def wait_until_up(
    process: "Forked | subprocess.Popen[bytes]", ask: Callable[[], object], *, log: Callable[[], str], seconds: float
) -> None:
    """Wait until `ask` finds a server; fail with the log where the process ends or takes too long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the process ended with {process.returncode}:\n{log()}")
        try:
            ask()
        except httpx.TransportError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"the process did not come up:\n{log()}")


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for a condition that another process or thread brings about."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.01)
