"""Sends turns as clients do: one after the other for latency, many users at once for throughput."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from benchmarks.connection import Connection
from benchmarks.talk import telling

_POLL_SECONDS = 0.02

Says = Callable[[int, int], str]
"""Returns the n-th message of a user."""


@dataclass(slots=True)
class Talker:
    """One user in one thread, who says the messages of `says`. `said` counts them."""

    connection: Connection
    number: int = 0
    said: int = 0
    says: Says = telling

    @property
    def user_id(self) -> str:
        """Return the user's id."""
        return f"user-{self.number}"

    async def turn(self, **fields: Any) -> tuple[float, int, dict[str, Any]]:
        """Say the next thing; return seconds to the reply, status and answer."""
        message = self.says(self.said, self.number)
        self.said += 1
        body = {"user_id": self.user_id, "thread_id": "t1", "message": message, **fields}
        begun = perf_counter()
        status, answer = await self.connection.post("/api/agent", body)
        return perf_counter() - begun, status, answer


@dataclass(slots=True)
class Load:
    """The result of a load. `latencies` are the successful turns', in seconds."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list[float])
    errors: list[str] = field(default_factory=list[str])
    turn_ids: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def turns(self) -> int:
        """Return the number of successful turns."""
        return len(self.latencies)

    @property
    def rate(self) -> float:
        """Return turns a second."""
        return self.turns / self.seconds


async def many_users(port: int, *, users: int, seconds: float, says: Says = telling) -> Load:
    """Let each user say the next thing after each reply, until the time is up; then wait for the last replies."""
    load = Load()
    talkers = [Talker(await Connection.to(port), number, says=says) for number in range(users)]
    begun = perf_counter()
    await asyncio.gather(*(_talk(talker, load, until=begun + seconds) for talker in talkers))
    load.seconds = perf_counter() - begun
    for talker in talkers:
        talker.connection.close()
    return load


async def _talk(talker: Talker, load: Load, *, until: float) -> None:
    ids = load.turn_ids.setdefault(talker.user_id, [])
    while perf_counter() < until:
        try:
            taken, status, answer = await talker.turn()
        except OSError as error:
            load.errors.append(type(error).__name__)
            return
        if status != 200:
            load.errors.append(f"{status} {answer.get('error', {}).get('code')}")
            continue
        load.latencies.append(taken)
        if "turn_id" in answer:
            ids.append(answer["turn_id"])


@dataclass(frozen=True, slots=True)
class Updates:
    """A load's updates: seconds until none was pending any more, and the number that ended in each way."""

    seconds: float
    ended: dict[str, int]
    changes: int


async def until_updated(port: int, load: Load, *, seconds: float) -> float:
    """Wait for the updates, at most `seconds`, and return how long it took. A user's last update ends last."""
    connection = await Connection.to(port)
    begun = perf_counter()
    for user_id, ids in load.turn_ids.items():
        while ids and perf_counter() - begun < seconds:
            if (await _update(connection, user_id, ids[-1]))["status"] != "pending":
                break
            await asyncio.sleep(_POLL_SECONDS)
    connection.close()
    return perf_counter() - begun


async def updates_of(port: int, load: Load, *, taken: float) -> Updates:
    """Ask for each update, which took the load `taken` seconds to end."""
    connection = await Connection.to(port)
    ended, changes = dict[str, int](), 0
    for user_id, ids in load.turn_ids.items():
        for turn_id in ids:
            update = await _update(connection, user_id, turn_id)
            ended[update["status"]] = ended.get(update["status"], 0) + 1
            changes += len(update["changes"])
    connection.close()
    return Updates(taken, ended, changes)


async def _update(connection: Connection, user_id: str, turn_id: str) -> dict[str, Any]:
    status, turn = await connection.get(f"/api/turns/{turn_id}?user_id={user_id}")
    if status != 200:
        raise RuntimeError(f"The turn {turn_id} cannot be read back ({status}).")
    update: dict[str, Any] = turn["memory"]["update"]
    return update


async def one_by_one(talkers: Sequence[Talker], *, turns: int) -> list[list[float]]:
    """Return each talker's seconds to the reply, over `turns` turns in alternation, so that noise is shared alike.

    Raises:
        RuntimeError: a turn failed.
    """
    taken: list[list[float]] = [[] for _ in talkers]
    for _ in range(turns):
        for talker, times in zip(talkers, taken, strict=True):
            seconds, status, _answer = await talker.turn()
            if status != 200:
                raise RuntimeError(f"A turn failed with {status}.")
            times.append(seconds)
    return taken
