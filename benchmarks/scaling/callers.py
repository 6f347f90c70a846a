"""Callers who speak for many users of unequal zeal, and who send a turn again until it is answered."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from time import perf_counter
from typing import Any

from benchmarks.connection import Connection
from benchmarks.talk import chatting

ANSWER_SECONDS = 60.0
"""How long a turn is sent again before it is given up."""
_AGAIN_SECONDS = 0.1
_WATCH_SECONDS = 0.5


class Users:
    """Users of whom the n-th speaks in proportion to 1 / n (Zipf's law); a user says one thing at a time."""

    def __init__(self, count: int, *, seed: int = 1) -> None:
        self._numbers = range(count)
        self._weights = list(itertools.accumulate(1 / (number + 1) for number in self._numbers))
        self._random = random.Random(seed)
        self._speaking = set[int]()
        self.said: Counter[int] = Counter()
        self.answered: dict[int, list[str]] = {}

    @contextmanager
    def speaking(self) -> Generator[int]:
        """Choose a user who says nothing at the moment."""
        number = self._chosen()
        self._speaking.add(number)
        try:
            yield number
        finally:
            self._speaking.discard(number)

    def _chosen(self) -> int:
        while True:
            (number,) = self._random.choices(self._numbers, cum_weights=self._weights)
            if number not in self._speaking:
                return number


def user_id(number: int) -> str:
    """Return the id of the user with this number."""
    return f"user-{number}"


@dataclass(slots=True)
class Talked:
    """Collects what a load brought.

    `latencies` of turns in seconds, tries again included; `owed` at seconds from its begin.
    """

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list[float])
    errors: Counter[str] = field(default_factory=Counter[str])
    given_up: int = 0
    owed: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    settled_in: float | None = None

    def as_figures(self) -> dict[str, Any]:
        """Return the fields for the JSON."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**found, "errors": dict(self.errors)}


@dataclass(slots=True)
class Caller:
    """Sends turns to one of `ports`, and to the next one after an error."""

    users: Users
    ports: Sequence[int]
    at: int
    talked: Talked
    _connection: Connection | None = None

    async def talk(self, *, until: float) -> None:
        """Say one thing after another until the time is up."""
        while perf_counter() < until:
            with self.users.speaking() as number:
                await self._say(number)
        if self._connection is not None:
            self._connection.close()

    async def _say(self, number: int) -> None:
        said = self.users.said[number]
        self.users.said[number] += 1
        body = {
            "user_id": user_id(number),
            "thread_id": "t1",
            "message": chatting(said, number),
            "turn_id": f"{number}-{said}",
        }
        begun = perf_counter()
        while perf_counter() - begun < ANSWER_SECONDS:
            error = await self._try(body)
            if error is None:
                self.talked.latencies.append(perf_counter() - begun)
                self.users.answered.setdefault(number, []).append(body["message"])
                return
            self.talked.errors[error] += 1
            self.at += 1
            await asyncio.sleep(_AGAIN_SECONDS)
        self.talked.given_up += 1

    async def _try(self, body: dict[str, Any]) -> str | None:
        """Send the turn; return the kind of the error, None without one."""
        try:
            if self._connection is None:
                self._connection = await Connection.to(self.ports[self.at % len(self.ports)])
            status, answer = await self._connection.post("/api/agent", body)
        except OSError as error:
            self._drop()
            return type(error).__name__
        if status == 200:
            return None
        self._drop()
        return f"{status} {answer.get('error', {}).get('code')}"

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


async def talk(users: Users, ports: Sequence[int], *, callers: int, seconds: float, settle_seconds: float) -> Talked:
    """Let callers talk for `seconds`; then wait until no update is owed, at most `settle_seconds`."""
    talked = Talked()
    begun = perf_counter()
    watching = asyncio.create_task(_watch(ports, talked, begun))
    try:
        await asyncio.gather(*(Caller(users, ports, at, talked).talk(until=begun + seconds) for at in range(callers)))
        talked.seconds = perf_counter() - begun
        while perf_counter() - begun < talked.seconds + settle_seconds:
            if await owed(ports) == 0:
                talked.settled_in = perf_counter() - begun - talked.seconds
                break
            await asyncio.sleep(_WATCH_SECONDS / 5)
    finally:
        watching.cancel()
    return talked


async def _watch(ports: Sequence[int], talked: Talked, begun: float) -> None:
    while True:
        found = await owed(ports)
        if found is not None:
            talked.owed.append((round(perf_counter() - begun, 1), found))
        await asyncio.sleep(_WATCH_SECONDS)


async def owed(ports: Sequence[int]) -> int | None:
    """Return the number of turns whose update is pending, from the first process that says it; None where none does."""
    for port in ports:
        try:
            connection = await Connection.to(port)
            try:
                status, stats = await connection.get("/memory-stats")
            finally:
                connection.close()
        except OSError:
            continue
        if status == 200:
            return int(stats["pending"])
    return None
