"""Runs several processes of the service on one socket, and starts another where one has died."""

import logging
import multiprocessing
import signal
import socket
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from recollect.memory.values.errors import ConfigurationError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.2
RESTART_SECONDS = 1.0
"""Least time between two starts of dead processes: one that dies at once must not be started without end."""
GRACE_SECONDS = 5.0
"""Beyond SHUTDOWN_SECONDS, before a process that does not end is killed."""
MISCONFIGURED = 2
"""The exit code of a process that a setting has stopped: another one would end as it did."""

Serve = Callable[[socket.socket], None]


class Misconfigured(ConfigurationError):
    """A process could not start; it has said why."""


class Processes:
    """Runs `count` processes, each of which calls `serve` with `bound`, until SIGINT or SIGTERM.

    Each has an interpreter of its own (`serve` must be picklable): no thread and no lock is forked.
    """

    def __init__(self, serve: Serve, bound: socket.socket, *, count: int, shutdown_seconds: float) -> None:
        self._serve = serve
        self._bound = bound
        self._count = count
        self._seconds = shutdown_seconds + GRACE_SECONDS
        self._context = multiprocessing.get_context("spawn")
        self._running: list[SpawnProcess] = []
        self._is_stopping = False

    def run(self) -> None:
        """Start the processes, replace those that die, and end them all when told to stop.

        Raises:
            Misconfigured: a process was stopped by a setting; all have ended.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        try:
            while not self._is_stopping:
                self._fill()
                wait([process.sentinel for process in self._running], LOOK_SECONDS)
                self._bury()
        finally:
            self._end()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _fill(self) -> None:
        """Start as many processes as are missing."""
        while len(self._running) < self._count and not self._is_stopping:
            process = self._context.Process(target=self._serve, args=(self._bound,), name="serve", daemon=True)
            process.start()
            self._running.append(process)

    def _bury(self) -> None:
        """Remove the processes that have died.

        Raises:
            Misconfigured: a setting has stopped one.
        """
        dead = [process for process in self._running if not process.is_alive()]
        if not dead or self._is_stopping:
            return
        self._running = [process for process in self._running if process not in dead]
        if any(process.exitcode == MISCONFIGURED for process in dead):
            raise Misconfigured
        logger.warning("processes died and are replaced", extra={"action": "processes_died", "processes": len(dead)})
        time.sleep(RESTART_SECONDS)

    def _end(self) -> None:
        """Let all processes finish at the same time, and kill those that are late."""
        for process in self._running:
            process.terminate()
        deadline = time.monotonic() + self._seconds
        for process in self._running:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
