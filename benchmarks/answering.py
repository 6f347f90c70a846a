"""Measures the service in one talk with one embedder: its model calls, one user's latency, many users' throughput."""

import asyncio
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from benchmarks.connection import Connection
from benchmarks.load import Load, Says, Talker, Updates, many_users, one_by_one, until_updated, updates_of
from benchmarks.plan import Findings, Plan
from benchmarks.processes import Server
from benchmarks.report import Row
from benchmarks.talk import chatting, telling

REST_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Talk:
    """One talk with one embedder (the setting EMBEDDING_MODEL), and its bars.

    `least_rate` is a multiple of the bare graph's rate.
    """

    name: str
    shown: str
    embedder: str
    says: Says
    most_over_floor_ms: float
    most_cpu_ms: float
    least_rate: float
    updates_within: float


TALKS = (
    Talk("lexical", "built-in embedder", "lexical", telling, 10.0, 16.0, 1.0, 10.0),
    Talk("fake-embed", "50 ms embedding", "fake-embed", telling, 58.0, 16.0, 1.0, 10.0),
    Talk("different", "different turns, 50 ms embedding", "fake-embed", chatting, 58.0, 20.0, 0.9, 2.0),
)


@dataclass(frozen=True, slots=True)
class Reference:
    """Holds what the service is compared with: turns a second under the load, and CPU seconds a turn."""

    rate: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Answering:
    """The service under test, the fake model behind it, the floor beside it, and the measured references."""

    plan: Plan
    talk: Talk
    running: Server
    model: Server
    bare: Server
    floor: Reference
    graph: Reference

    async def measure(self) -> Findings:
        """Run all measurements, one after the other."""
        rows, figures = list[Row](), dict[str, Any]()
        for name, measured in (("latency", self._latency), ("calls", self._calls), ("load", self._load)):
            found, figures[name] = await measured()
            rows += found
        return [Row(f"{self.talk.shown}: {row.what}", row.target, row.figure, row.passed) for row in rows], figures

    async def _latency(self) -> Findings:
        """Measure one user at a time, in a thread that is longer than the window, in alternation with the floor."""
        says = self.talk.says
        talkers = [
            Talker(await Connection.to(server.port), number=20_000, says=says) for server in (self.running, self.bare)
        ]
        for _ in range(self.plan.window + 1):
            await asyncio.gather(*(talker.turn() for talker in talkers))
        own, low = await one_by_one(talkers, turns=self.plan.turns)
        for talker in talkers:
            talker.connection.close()
        over, most = (median(own) - median(low)) * 1000, self.talk.most_over_floor_ms
        figure = f"{median(own) * 1000:.1f} ms = floor {median(low) * 1000:.1f} + {over:.1f}"
        row = Row("reply p50, one user, past the window", f"<= floor + {most:.0f} ms", figure, over <= most)
        return [row], {"service": own, "floor": low}

    async def _calls(self) -> Findings:
        """Count the calls at the fake, turn by turn, each with its update awaited."""
        window = self.plan.window
        counter = await Connection.to(self.model.port)
        talker = Talker(await Connection.to(self.running.port), 10_000, says=self.talk.says)
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
        plan, port = self.plan, self.running.port
        load = await many_users(port, users=plan.users, seconds=plan.seconds, says=self.talk.says)
        taken = await until_updated(port, load, seconds=6 * self.talk.updates_within)
        cpu = (self.running.cpu_seconds - cpu) / max(1, load.turns)
        updates = await updates_of(port, load, taken=taken)
        grown = self.running.resident_mb
        _, calls = await counter.get("/calls")
        counter.close()
        tokens = {kind: _sum(calls, kind, "tokens") / max(1, load.turns) for kind in ("chat", "extraction")}
        asked = [call for call in calls if call["kind"] == "embedding"]
        embedded = len(asked) / max(1, load.turns), _sum(asked, "embedding", "texts") / max(1, load.turns)
        rows = [
            *self._throughput(load, updates),
            self._cpu(cpu),
            Row("embedding calls, and texts in them, a turn", "", f"{embedded[0]:.2f}, {embedded[1]:.2f}"),
            Row("prompt tokens a turn, chat + extraction", "", f"{tokens['chat']:.0f} + {tokens['extraction']:.0f}"),
            Row(f"resident before / after these {2 * load.turns:,} messages", "", f"{resident:.0f} / {grown:.0f} MiB"),
        ]
        more = {"updates": asdict(updates), "cpu_seconds_a_turn": cpu, "tokens_a_turn": tokens, "embedded": embedded}
        return rows, {**summary(load), **more, "resident_mb": [resident, grown]}

    def _cpu(self, seconds: float) -> Row:
        figure = (
            f"{seconds * 1000:.1f} ms = {seconds / self.floor.cpu:.1f} x floor, {seconds / self.graph.cpu:.1f} x bare"
        )
        most = self.talk.most_cpu_ms / 1000
        return Row("service CPU a turn, its update included", f"<= {most * 1000:.0f} ms", figure, seconds <= most)

    def _throughput(self, load: Load, updates: Updates) -> list[Row]:
        least, times = self.talk.least_rate, load.rate / self.graph.rate
        ended = ", ".join(f"{count} {status}" for status, count in sorted(updates.ended.items())) or "none"
        in_time = updates.ended == {"done": load.turns} and updates.seconds <= self.talk.updates_within
        what = f"{self.plan.users} users for {self.plan.seconds:.0f} s"
        rate = f"{load.rate:.1f} turns/s = {times:.2f} x bare graph, {load.rate / self.floor.rate:.2f} x floor"
        updated = f"{updates.seconds:.1f} s ({ended}; {updates.changes} changes)"
        return [
            Row(what, f">= {least:.1f} x bare graph", rate, times >= least),
            Row("errors under that load", "0", str(len(load.errors)), not load.errors),
            Row("all updates done after that load", f"<= {self.talk.updates_within:.0f} s", updated, in_time),
            Row("reply p50 / p95 under that load", "", spread(load.latencies)),
        ]


async def reference_under_load(plan: Plan, name: str, server: Server) -> tuple[Reference, Findings]:
    """Measure the same users at a reference, with the talk of different turns, whose threads become as long."""
    cpu = server.cpu_seconds
    load = await many_users(server.port, users=plan.users, seconds=plan.seconds, says=chatting)
    cpu = (server.cpu_seconds - cpu) / max(1, load.turns)
    rows = [
        Row(f"{name}: the same users", "", f"{load.rate:.1f} turns/s"),
        Row(f"{name}: reply p50 / p95 under that load", "", spread(load.latencies)),
        Row(f"{name}: CPU a turn", "", f"{cpu * 1000:.1f} ms"),
    ]
    return Reference(load.rate, cpu), (rows, {**summary(load), "cpu_seconds_a_turn": cpu})


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


def _sum(calls: list[dict[str, Any]], kind: str, what: str) -> int:
    return sum(call[what] for call in calls if call["kind"] == kind)
