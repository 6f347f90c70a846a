"""Runs the commands of `recollect` as a user would, beside a service or without one."""

import os
import subprocess
import sys

from tests.service.support.running import PROJECT, Service

SECONDS = 60


def recollect(running: Service, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command with the service's settings, in the service's folder, whether or not it runs."""
    command = recollecting(running, *arguments)
    told, shown = command.communicate(timeout=SECONDS)
    return subprocess.CompletedProcess(command.args, command.returncode, told, shown)


def recollecting(running: Service, *arguments: str, stdin: int | None = None) -> "subprocess.Popen[str]":
    """Start a command; its caller waits for it. `stdin`: a PIPE for what is typed into it."""
    settings = {"PYTHONPATH": str(PROJECT), "DATA_DIR": str(running.data_dir), "COLUMNS": "200", **running.settings}
    return subprocess.Popen(
        [sys.executable, "-c", "from recollect.api.cli.main import main; main()", *arguments],
        cwd=running.folder,
        env={**os.environ, **settings},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
