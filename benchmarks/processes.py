"""Starts the measured processes, each in a folder and an environment of its own, and reads their CPU and memory."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
START_SECONDS = 30.0
STOP_SECONDS = 20.0
_MEBIBYTE = 1 << 20
RECOLLECT = (sys.executable, "-c", "from recollect.api.cli.main import main; main()")


@dataclass(frozen=True, slots=True)
class Server:
    """A running process and the loopback port that it serves. `started_in`: seconds to the first answer of /health."""

    process: "subprocess.Popen[bytes]"
    port: int
    started_in: float = 0.0

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time that it took so far in seconds, user and system together."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    @property
    def resident_mb(self) -> float:
        """Return its resident memory in MiB."""
        return psutil.Process(self.process.pid).memory_info().rss / _MEBIBYTE

    @property
    def model_url(self) -> str:
        """Return the OPENAI_BASE_URL of a fake model."""
        return f"http://127.0.0.1:{self.port}/v1"


def free_port() -> int:
    """Return a loopback port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def fake_model() -> Generator[Server]:
    """Run the fake model server."""
    with _printed("benchmarks.fake_model", {}) as server:
        yield server


@contextmanager
def learning_model() -> Generator[Server]:
    """Run the imperfect model of the learning benchmark."""
    with _printed("benchmarks.learning_model", {}) as server:
        yield server


@contextmanager
def floor(model: Server) -> Generator[Server]:
    """Run the bare endpoint in front of that model."""
    with _printed("benchmarks.floor", {"MODEL_URL": model.model_url}) as server:
        yield server


@contextmanager
def bare_graph(model: Server, *, window: int | None = None) -> Generator[Server]:
    """Run the bare LangGraph graph in front of that model, with so many turns, or the whole thread, in its prompt."""
    given = {} if window is None else {"WINDOW": str(window)}
    with _printed("benchmarks.bare_graph", {"MODEL_URL": model.model_url, **given}) as server:
        yield server


def help_seconds() -> float:
    """Return the seconds that `recollect --help` takes."""
    begun = time.perf_counter()
    subprocess.run([*RECOLLECT, "--help"], cwd=ROOT, env=environment({}), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


@dataclass(slots=True)
class Recollect:
    """A place of `recollect serve` or `recollect worker`, whose process may be killed and started again.

    It has a port of its own, and its data and log are in `folder`.
    """

    folder: Path
    settings: Mapping[str, str]
    command: str = "serve"
    port: int = field(default_factory=free_port)
    _process: "subprocess.Popen[bytes] | None" = field(init=False, default=None)

    def start(self) -> Server:
        """Start the process, and wait until it answers (a worker: no longer than it takes to be started).

        Raises:
            RuntimeError: it did not come up; the message holds the end of its log.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        given = {"HOST": "127.0.0.1", "PORT": str(self.port), "DATA_DIR": str(self.folder / "data"), **self.settings}
        begun, log_file = time.perf_counter(), self.folder / "service.log"
        with log_file.open("ab") as log:
            started = subprocess.Popen(
                [*RECOLLECT, self.command], cwd=self.folder, env=environment(given), stdout=log, stderr=log
            )
        self._process = started
        while self.command == "serve" and not _answers(self.port):
            if started.poll() is not None or time.perf_counter() - begun > START_SECONDS:
                self.stop()
                raise RuntimeError(f"The service did not come up:\n{log_file.read_text(errors='replace')[-2_000:]}")
            time.sleep(0.005)
        return Server(started, self.port, time.perf_counter() - begun)

    def kill(self) -> None:
        """Kill the process as the system does when memory is short: it can do nothing more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ask the process to stop, and kill it where it does not."""
        if self._process is not None:
            _stop(self._process)


@contextmanager
def service(folder: Path, settings: Mapping[str, str]) -> Generator[Server]:
    """Run a real `recollect serve` with its data in `folder`, and stop it at the end.

    Raises:
        RuntimeError: it did not come up; the message holds the end of its log.
    """
    recollect = Recollect(folder, settings)
    try:
        yield recollect.start()
    finally:
        recollect.stop()


@contextmanager
def _printed(module: str, settings: Mapping[str, str]) -> Generator[Server]:
    """Run a module that prints its port and serves until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", module], cwd=ROOT, env=environment(settings), stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        while not _listens(port):
            time.sleep(0.005)
        yield Server(process, port)
    finally:
        _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Ask the process to stop, and kill it where it does not."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a minimal environment: no developer's settings, keys or proxies reach the measured process."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false", "LOG_LEVEL": "WARNING", **settings}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(port: int) -> bool:
    """Tell whether a service answers /health there."""
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
