"""Measures the service with one embedder: its model calls, the latency of one user, the throughput of many."""

import asyncio
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from benchmarks.connection import Connection
from benchmarks.load import Load, Talker, Updates, many_users, one_by_one, updates_of
from benchmarks.plan import Findings, Plan
from benchmarks.processes import Server
from benchmarks.report import Row

EMBEDDERS = {"lexical": "built-in embedder", "fake-embed": "50 ms embedding"}
"""The setting EMBEDDING_MODEL, and its name in the table."""
MOST_OVER_FLOOR_MS = {"lexical": 20.0, "fake-embed": 70.0}
LEAST_TURNS_A_SECOND = 40.0
UPDATES_WITHIN_SECONDS = 10.0
REST_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Answering:
    """The service under test, the fake model behind it and the floor beside it."""

    plan: Plan
    embedder: str
    running: Server
    model: Server
    bare: Server

    async def measure(self) -> Findings:
        """Run all measurements, one after the other."""
        rows, figures = list[Row](), dict[str, Any]()
        for name, measured in (("latency", self._latency), ("calls", self._calls), ("load", self._load)):
            found, figures[name] = await measured()
            rows += found
        return [
            Row(f"{EMBEDDERS[self.embedder]}: {row.what}", row.target, row.figure, row.passed) for row in rows
        ], figures

    async def _latency(self) -> Findings:
        """Measure one user at a time, in a thread that is longer than the window, in alternation with the floor."""
        talkers = [Talker(await Connection.to(server.port), number=20_000) for server in (self.running, self.bare)]
        for _ in range(self.plan.window + 1):
            await asyncio.gather(*(talker.turn() for talker in talkers))
        own, low = await one_by_one(talkers, turns=self.plan.turns)
        for talker in talkers:
            talker.connection.close()
        over, most = (median(own) - median(low)) * 1000, MOST_OVER_FLOOR_MS[self.embedder]
        figure = f"{median(own) * 1000:.1f} ms = floor {median(low) * 1000:.1f} + {over:.1f}"
        row = Row("reply p50, one user, past the window", f"<= floor + {most:.0f} ms", figure, over <= most)
        return [row], {"service": own, "floor": low}

    async def _calls(self) -> Findings:
        """Count the calls at the fake, turn by turn, each with its update awaited."""
        window = self.plan.window
        talker, counter = Talker(await Connection.to(self.running.port), 10_000), await Connection.to(self.model.port)
        await _rest(counter)
        seen = list[dict[str, int]]()
        for _ in range(window + 3):
            await talker.turn(wait_for_memory=True)
            _, calls = await counter.get("/calls")
            seen.append(_before_and_after(calls))
        talker.connection.close()
        counter.close()
        chats = {(turn["chat before"], turn["extraction after"], turn["others"]) for turn in seen}
        early = max(turn["embedding before"] for turn in seen[:window])
        past = {turn["embedding before"] for turn in seen[window + 1 :]}
        rows = [
            Row("chat calls before / after the reply", "1 / 1", _calls_shown(chats), chats == {(1, 1, 0)}),
            Row("embedding calls before it, nothing beyond the window", "0", str(early), early == 0),
            Row("embedding calls before it, past the window", "", ", ".join(map(str, sorted(past)))),
        ]
        return rows, {"turns": seen}

    async def _load(self) -> Findings:
        """Measure many users at once; count CPU and prompt tokens of the turns and of all their updates."""
        counter = await Connection.to(self.model.port)
        await counter.get("/calls")
        resident, cpu = self.running.resident_mb, self.running.cpu_seconds
        load = await many_users(self.running.port, users=self.plan.users, seconds=self.plan.seconds)
        updates = await updates_of(self.running.port, load, seconds=6 * UPDATES_WITHIN_SECONDS)
        cpu, grown = (self.running.cpu_seconds - cpu) / max(1, load.turns), self.running.resident_mb
        _, calls = await counter.get("/calls")
        counter.close()
        tokens = {kind: _tokens(calls, kind) / max(1, load.turns) for kind in ("chat", "extraction", "embedding")}
        rows = [
            *self._throughput(load, updates),
            Row("service CPU a turn, its update included", "", f"{cpu * 1000:.1f} ms"),
            Row("prompt tokens a turn, chat + extraction", "", f"{tokens['chat']:.0f} + {tokens['extraction']:.0f}"),
            Row(f"resident before / after these {2 * load.turns:,} messages", "", f"{resident:.0f} / {grown:.0f} MiB"),
        ]
        more = {"updates": asdict(updates), "cpu_seconds_a_turn": cpu, "tokens_a_turn": tokens}
        return rows, {**summary(load), **more, "resident_mb": [resident, grown]}

    def _throughput(self, load: Load, updates: Updates) -> list[Row]:
        kept = load.rate >= LEAST_TURNS_A_SECOND
        ended = ", ".join(f"{count} {status}" for status, count in sorted(updates.ended.items())) or "none"
        in_time = updates.ended == {"done": load.turns} and updates.seconds <= UPDATES_WITHIN_SECONDS
        what = f"{self.plan.users} users for {self.plan.seconds:.0f} s"
        updated = f"{updates.seconds:.1f} s ({ended}; {updates.changes} changes)"
        return [
            Row(what, f">= {LEAST_TURNS_A_SECOND:.0f} turns/s", f"{load.rate:.1f} turns/s", kept),
            Row("errors under that load", "0", str(len(load.errors)), not load.errors),
            Row("all updates done after that load", f"<= {UPDATES_WITHIN_SECONDS:.0f} s", updated, in_time),
            Row("reply p50 / p95 under that load", "", spread(load.latencies)),
        ]


async def floor_under_load(plan: Plan, bare: Server) -> Findings:
    """Measure the same users at the bare endpoint, for half the time."""
    cpu = bare.cpu_seconds
    load = await many_users(bare.port, users=plan.users, seconds=plan.seconds / 2)
    cpu = (bare.cpu_seconds - cpu) / max(1, load.turns)
    rows = [
        Row("floor: the same users", "", f"{load.rate:.1f} turns/s"),
        Row("floor: reply p50 / p95 under that load", "", spread(load.latencies)),
        Row("floor: CPU a turn", "", f"{cpu * 1000:.1f} ms"),
    ]
    return rows, {**summary(load), "cpu_seconds_a_turn": cpu}


def spread(seconds: list[float]) -> str:
    """Return median and 95th percentile in milliseconds."""
    if len(seconds) < 2:
        return "too few turns"
    return f"{median(seconds) * 1000:.0f} / {quantiles(seconds, n=20)[-1] * 1000:.0f} ms"


def summary(load: Load) -> dict[str, Any]:
    """Return a load's figures for the JSON."""
    return {"turns": load.turns, "seconds": load.seconds, "errors": load.errors[:20], "spread": spread(load.latencies)}


async def _rest(counter: Connection) -> None:
    """Wait until the model gets no calls: updates of the last measurement are still being worked off."""
    while (await counter.get("/calls"))[1]:  # noqa: ASYNC110 - another process's state has no event
        await asyncio.sleep(REST_SECONDS)


def _before_and_after(calls: list[dict[str, Any]]) -> dict[str, int]:
    """Count the calls before and after the reply: a call that came before the chat call's answer is before it."""
    replied = max((call["answered"] for call in calls if call["kind"] == "chat"), default=0.0)
    found = {"chat before": 0, "extraction after": 0, "embedding before": 0, "embedding after": 0, "others": 0}
    for call in calls:
        place = f"{call['kind']} {'before' if call['arrived'] < replied else 'after'}"
        found[place if place in found else "others"] += 1
    return found


def _calls_shown(counts: set[tuple[int, int, int]]) -> str:
    return ", ".join(
        f"{before} / {after}" + f" and {others} more" * bool(others) for before, after, others in sorted(counts)
    )


def _tokens(calls: list[dict[str, Any]], kind: str) -> int:
    return sum(call["tokens"] for call in calls if call["kind"] == kind)
