"""Runs the processes of the scale benchmark, which are killed and started again at the same place."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.processes import RECOLLECT, START_SECONDS, STOP_SECONDS, answers, environment, free_port


@dataclass(slots=True)
class Recollect:
    """`recollect serve` on a port of its own, or `recollect worker`; its files are in `folder`."""

    folder: Path
    settings: Mapping[str, str]
    command: str = "serve"
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start the process, and wait until it answers (a worker: no longer than it takes to be started)."""
        self.folder.mkdir(parents=True, exist_ok=True)
        given = {"HOST": "127.0.0.1", "PORT": str(self.port), "DATA_DIR": str(self.folder / "data"), **self.settings}
        with (self.folder / "service.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*RECOLLECT, self.command], cwd=self.folder, env=environment(given), stdout=log, stderr=log
            )
        begun = time.monotonic()
        while self.command == "serve" and not answers(self.port):
            if self.process.poll() is not None or time.monotonic() - begun > START_SECONDS:
                log_text = (self.folder / "service.log").read_text(errors="replace")[-2_000:]
                raise RuntimeError(f"The service did not come up:\n{log_text}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the process as the system does when memory is short: it can do nothing more."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """Ask the process to stop, and kill it where it does not."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()


@dataclass(slots=True)
class MongoServer:
    """A MongoDB-compatible server that `command` starts: called with a port and a folder, it prints the URL.

    The command leaves the server's process id in the folder's file `pid`.
    """

    command: str
    folder: Path
    port: int = field(default_factory=free_port)

    def start(self) -> str:
        """Start the server; return its URL.

        Raises:
            CalledProcessError: the command failed.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        ran = subprocess.run(
            [self.command, str(self.port), str(self.folder)], stdout=subprocess.PIPE, text=True, check=True
        )
        return ran.stdout.strip()

    def stop(self) -> None:
        """Stop the server, and wait until its process has gone."""
        pid = int((self.folder / "pid").read_text())
        try:
            process = psutil.Process(pid)
            os.kill(pid, signal.SIGTERM)
            process.wait(STOP_SECONDS)
        except psutil.NoSuchProcess:
            return
