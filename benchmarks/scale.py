"""Measures one, two and four processes, and one that only works: `python -m benchmarks.scale` (`make bench-scale`).

It runs on the servers that MONGODB_URL and QDRANT_URL name, else on what is there, and says so: `--mongo-command`
starts a MongoDB-compatible server, which is then restarted on the way too; without Qdrant each process has an embedded
index of its own and there is no `recollect worker`; without either one process is measured alone. 10,000 users speak
in proportion to 1 / n. In the last load a process is killed every 10 s. Afterwards every answered turn is looked for.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from uuid import uuid4

import uvloop
from pymongo import MongoClient

from benchmarks.plan import FULL, Findings
from benchmarks.processes import Recollect, fake_model
from benchmarks.report import Row, conclusion, machine, table, write
from benchmarks.scaling.callers import Talked, Users, talk
from benchmarks.scaling.looking import Found, look
from benchmarks.scaling.mongo_server import MongoServer

RESULTS = Path(__file__).parent / "results" / "scale.json"
USERS = 10_000
SETTLE_SECONDS = 120.0
DROP_SECONDS = 60
"""How long a server may take to delete what a load has left."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a run.

    `callers` talk for `seconds` to each number of `processes`, then for `killing_seconds` while every `kill_every`
    seconds one is killed.
    """

    processes: tuple[int, ...]
    callers: int
    seconds: float
    killing_seconds: float
    kill_every: float


WHOLE = Size(processes=(1, 2, 4), callers=64, seconds=20.0, killing_seconds=40.0, kill_every=10.0)
QUICK = Size(processes=(1, 2), callers=8, seconds=1.0, killing_seconds=4.0, kill_every=2.0)


@dataclass(frozen=True, slots=True)
class Backends:
    """The servers: their settings, the one that this run started and may restart, and what is said of them."""

    settings: Mapping[str, str]
    mongo: MongoServer | None
    said: str

    @property
    def is_shared(self) -> bool:
        """Return whether processes share the store."""
        return "MONGODB_URL" in self.settings

    @property
    def has_workers(self) -> bool:
        """Return whether processes share the index too, so that one can only work."""
        return self.is_shared and "QDRANT_URL" in self.settings


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="What several processes do.")
    parser.add_argument("--quick", action="store_true", help="a short run, whose figures mean little")
    parser.add_argument(
        "--mongo-command", help="starts a MongoDB-compatible server: COMMAND PORT FOLDER prints its URL"
    )
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    given = parser.parse_args(arguments)
    ran_on = machine()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder, ExitStack() as stack:
        backends = _backends(given.mongo_command, Path(folder) / "mongo", stack)
        print(backends.said, file=sys.stderr, flush=True)
        rows, figures = measure(QUICK if given.quick else WHOLE, backends, Path(folder))
    print(f"{backends.said}\n\n{table(rows)}\n\n{conclusion(rows)}")
    write(given.json, rows=rows, figures={"backends": backends.said, **figures}, ran_on=ran_on)


def measure(size: Size, backends: Backends, folder: Path) -> Findings:
    """Run the loads one after the other, each with a database of its own."""
    rows, figures = list[Row](), dict[str, Any]()
    counts = size.processes if backends.is_shared else (1,)
    with fake_model() as model:
        settings = {**FULL.settings(model, embedder="fake-embed"), **backends.settings}
        for count in counts:
            name = f"{count} process{'es' if count > 1 else ''}"
            print(f"measuring: {name} …", file=sys.stderr, flush=True)
            with House(folder / str(count), settings, backends, count) as house:
                users = Users(USERS)
                talked = uvloop.run(house.talk(users, size))
                rows += _rows(name, size.callers, talked, uvloop.run(look(users, house.ports[0])), undisturbed=True)
                figures[name] = talked.as_figures()
        name = f"{counts[-1]} with kills"
        print(f"measuring: {name} …", file=sys.stderr, flush=True)
        with House(folder / "killed", settings, backends, counts[-1]) as house:
            users = Users(USERS, seed=2)
            talked = uvloop.run(house.talk_killed(users, size))
            rows += _rows(name, size.callers, talked, uvloop.run(look(users, house.ports[0])), undisturbed=False)
            figures[name] = {**talked.as_figures(), "kills": house.kills, "restarts": house.restarts}
    return rows, figures


class House:
    """The processes of one load, on a database of its own that is dropped at the end."""

    def __init__(self, folder: Path, settings: Mapping[str, str], backends: Backends, count: int) -> None:
        self.kills = self.restarts = 0
        self._closing = ExitStack()
        self._backends = backends
        name = f"recollect_scale_{uuid4().hex[:12]}"
        self._database = name if backends.is_shared else None
        own = {"MONGODB_DATABASE": name, "QDRANT_COLLECTION": name} if backends.is_shared else {}
        self._serving = [Recollect(folder / str(number), {**settings, **own}) for number in range(count)]
        works = [Recollect(folder / "worker", {**settings, **own}, "worker")] if backends.has_workers else []
        self._all = [*self._serving, *works]
        self.ports = [each.port for each in self._serving]

    def __enter__(self) -> "House":
        with ExitStack() as stack:  # whatever was started is stopped where a later one does not start
            if self._database is not None:
                stack.callback(self._drop, self._database)
            for each in self._all:
                stack.callback(each.stop)
                each.start()
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    async def talk(self, users: Users, size: Size) -> Talked:
        """Let the callers talk, and wait for the updates."""
        return await talk(users, self.ports, callers=size.callers, seconds=size.seconds, settle_seconds=SETTLE_SECONDS)

    async def talk_killed(self, users: Users, size: Size) -> Talked:
        """Let them talk while processes are killed in turn, and the server of this run is restarted in between."""
        killing = asyncio.create_task(self._kill_in_turn(size))
        try:
            return await talk(
                users, self.ports, callers=size.callers, seconds=size.killing_seconds, settle_seconds=SETTLE_SECONDS
            )
        finally:
            killing.cancel()

    async def _kill_in_turn(self, size: Size) -> None:
        rounds = max(1, int(size.killing_seconds / size.kill_every) - 1)
        for number in range(rounds):
            await asyncio.sleep(size.kill_every / 2)
            if self._backends.mongo is not None and number == rounds // 2:
                await asyncio.to_thread(self._restart_server)
            await asyncio.sleep(size.kill_every / 2)
            killed = self._all[number % len(self._all)]
            await asyncio.to_thread(killed.kill)
            self.kills += 1
            await asyncio.to_thread(killed.start)

    def _drop(self, database: str) -> None:
        url = self._backends.settings["MONGODB_URL"]
        with MongoClient[dict[str, Any]](url, timeoutMS=DROP_SECONDS * 1_000) as client:
            client.drop_database(database)

    def _restart_server(self) -> None:
        assert self._backends.mongo is not None
        self._backends.mongo.stop()
        self._backends.mongo.start()
        self.restarts += 1


def _backends(command: str | None, folder: Path, stack: ExitStack) -> Backends:
    """Return the servers that the environment names, or that `command` starts."""
    settings = {
        name: os.environ[name] for name in ("MONGODB_URL", "QDRANT_URL", "QDRANT_API_KEY") if name in os.environ
    }
    mongo: MongoServer | None = None
    if "MONGODB_URL" in settings:
        store = "MongoDB: the server that MONGODB_URL names, which is not restarted."
    elif command is not None:
        mongo = MongoServer(command, folder)
        settings["MONGODB_URL"] = mongo.start()
        stack.callback(mongo.stop)
        store = "MongoDB: a compatible server of --mongo-command, which is restarted on the way."
    else:
        store = "Documents: SQLite, which one process has open; so one process is measured."
        settings.pop("QDRANT_URL", None)
    if "QDRANT_URL" in settings:
        index = "Qdrant: the server that QDRANT_URL names, which is not restarted; one more process only works."
    else:
        index = "Index: embedded, each process has its own; so there is no process that only works."
    return Backends(settings, mongo, f"{store} {index}")


def _rows(name: str, callers: int, talked: Talked, found: Found, *, undisturbed: bool) -> list[Row]:
    errors, most_owed = sum(talked.errors.values()), max((count for _, count in talked.owed), default=0)
    kinds = ", ".join(f"{count} x {kind}" for kind, count in talked.errors.most_common(4))
    p95 = quantiles(talked.latencies, n=20)[-1] if len(talked.latencies) > 1 else 0.0
    at_end = next((count for at, count in reversed(talked.owed) if at <= talked.seconds), 0)
    settled = "not within the time" if talked.settled_in is None else f"{talked.settled_in:.1f} s"
    wrong = f"{found.lost}, {found.twice}, {found.out_of_order}, {found.not_learned}"
    return [
        Row(f"{name}: {callers} callers", "", f"{len(talked.latencies) / talked.seconds:.1f} turns/s"),
        Row(f"{name}: reply p50 / p95", "", f"{median(talked.latencies) * 1000:.0f} / {p95 * 1000:.0f} ms"),
        Row(
            f"{name}: errors, each sent again" + ("" if undisturbed else "; given up"),
            "0" if undisturbed else "0 given up",
            f"{errors}{f' ({kinds})' if kinds else ''}" + ("" if undisturbed else f"; {talked.given_up}"),
            (errors == 0 if undisturbed else talked.given_up == 0),
        ),
        Row(f"{name}: updates owed, most / at the end", "", f"{most_owed} / {at_end}"),
        Row(f"{name}: all updates done after", "", settled, talked.settled_in is not None),
        Row(f"{name}: lost, twice, out of order, not learned", "0, 0, 0, 0", wrong, found.wrong == 0),
    ]


if __name__ == "__main__":
    main()
