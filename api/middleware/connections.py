"""All connections of one server: bounds their number and each one's times and sizes, checked ten times a second."""

import asyncio
from abc import abstractmethod
from typing import Protocol

from recollect.memory.values.frozen import frozen

SWEEP_SECONDS = 0.1
FILES_OF_STORES = 1_000
"""The files that the stores, the models' connections and uploads may have open."""


@frozen
class ConnectionLimits:
    """Bounds of connections. Times in seconds, sizes in bytes.

    `most` connections are served; `spare` more may ask for /health, and the oldest of them is ended first. A head
    (request line and headers) has `head_bytes`, `head_fields` and `head_seconds`. A body must bring `body_rate` a
    second over `body_seconds`. A connection without a request ends after `idle`, and one whose client reads nothing of
    its answer after `unread`. A refused client may send for `linger` seconds more, and `linger_bytes` of that are read:
    closing at once could cost it the answer.
    """

    most: int = 1_000
    spare: int = 100
    head_bytes: int = 64_000
    head_fields: int = 1_000
    head_seconds: float = 10.0
    body_rate: int = 1_000
    body_seconds: float = 30.0
    idle: float = 5.0
    unread: float = 120.0
    linger: float = 2.0
    linger_bytes: int = 1_000_000


class Bounded(Protocol):
    """A connection with bounds."""

    @abstractmethod
    def check(self, now: float) -> None:
        """End the connection if it is over a time limit at `now` (the loop's clock)."""
        ...

    @abstractmethod
    def turn_away(self) -> None:
        """End the connection, because there are too many."""
        ...


class Connections:
    """The open connections: the served ones, and a few spare ones."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self._served = set[Bounded]()
        self._spare = dict[Bounded, None]()
        self._sweep: asyncio.TimerHandle | None = None

    def add(self, connection: Bounded) -> None:
        """Add a connection. With too many spare ones, end the oldest: a probe asks as soon as it connects."""
        if len(self._served) < self.limits.most:
            self._served.add(connection)
        else:
            self._spare[connection] = None
            if len(self._spare) > self.limits.spare:
                oldest = next(iter(self._spare))
                del self._spare[oldest]
                oldest.turn_away()
        if self._sweep is None:
            self._schedule()

    def remove(self, connection: Bounded) -> None:
        """Remove a connection that has ended."""
        self._served.discard(connection)
        self._spare.pop(connection, None)

    def serves(self, connection: Bounded) -> bool:
        """Tell whether the connection is one of `most`; a spare one is promoted where there is room again."""
        if connection in self._spare and len(self._served) < self.limits.most:
            del self._spare[connection]
            self._served.add(connection)
        return connection in self._served

    def _schedule(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._check)

    def _check(self) -> None:
        """Check each connection, and schedule the next check while there are any."""
        self._sweep = None
        now = asyncio.get_running_loop().time()
        for connection in [*self._served, *self._spare]:
            connection.check(now)
        if self._served or self._spare:
            self._schedule()


def raise_open_files(limits: ConnectionLimits) -> None:
    """Raise the process's limit of open files for its connections and stores, as far as the system allows it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.most + limits.spare + FILES_OF_STORES
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
