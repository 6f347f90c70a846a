"""Runs a MongoDB-compatible server for the scale benchmark, which may restart it."""

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.processes import STOP_SECONDS, free_port


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
