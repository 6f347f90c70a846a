"""Runs the commands of `recollect` as a user would, beside a service or without one."""

import os
import subprocess

from tests.service.support.forked import Forked, Streams
from tests.service.support.nursery import PROJECT, nursery
from tests.service.support.running import Service

SECONDS = 60


def recollect(running: Service, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command with the service's settings, in the service's folder, whether or not it runs."""
    command = recollecting(running, *arguments)
    told, shown = command.communicate(timeout=SECONDS)
    return subprocess.CompletedProcess(command.args, command.wait(), told, shown)


def recollecting(running: Service, *arguments: str, typed: bool = False) -> Forked:
    """Start a command; its caller waits for it. `typed`: something is typed into it."""
    settings = {"PYTHONPATH": str(PROJECT), "DATA_DIR": str(running.data_dir), "COLUMNS": "200", **running.settings}
    environment = {**os.environ, **settings}
    return nursery().start(arguments, cwd=running.folder, env=environment, streams=Streams.piped(typed=typed))
