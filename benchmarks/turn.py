"""What a turn costs: `python -m benchmarks.turn` (`make bench`), about four minutes; `--quick` checks that it works.

Every process is real and on loopback: the fake model (chat 300 ms, embedding 50 ms), a bare endpoint that makes the one
chat call (the floor), and `recollect serve`. Missing a target is said, and is no failure of the run.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import uvloop

from benchmarks.connection import Connection
from benchmarks.growth import grow
from benchmarks.load import Load, Talker, many_users, one_by_one, updates_of
from benchmarks.processes import Server, fake_model, floor, service
from benchmarks.report import Row, conclusion, machine, table, write

RESULTS = Path(__file__).parent / "results" / "turn.json"
WINDOW = 10
UPDATES_WITHIN = 10.0
EMBEDDERS = {"lexical": "the built-in embedder", "fake-embed": "a 50 ms embedding"}
MOST_OVER_FLOOR_MS = {"lexical": 20.0, "fake-embed": 70.0}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    starts: int
    turns: int
    users: int
    seconds: float
    sizes: tuple[int, ...]
    reads: int


FULL = Plan(starts=5, turns=40, users=32, seconds=20.0, sizes=(1_000, 10_000, 100_000), reads=300)
QUICK = Plan(starts=1, turns=3, users=8, seconds=2.0, sizes=(500, 1_000), reads=30)

Findings = tuple[list[Row], dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turn", description="What a turn costs.")
    parser.add_argument("--quick", action="store_true", help="a short run, whose figures mean little")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    given = parser.parse_args(arguments)
    ran_on = machine()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        rows, figures = measure(QUICK if given.quick else FULL, Path(folder))
    print(table(rows))
    print(f"\n{conclusion(rows)} Machine: {ran_on}")
    write(given.json, rows=rows, figures=figures, ran_on=ran_on)


def measure(plan: Plan, folder: Path) -> Findings:
    """Everything, in turn: nothing that is measured shares the machine with another measurement."""
    rows, figures = list[Row](), dict[str, Any]()
    with ExitStack() as stack:
        model = stack.enter_context(fake_model())
        bare = stack.enter_context(floor(model))
        for name, findings in (
            ("start", lambda: _starts(plan, folder / "start", model)),
            *((embedder, _with_embedder(plan, folder, (model, bare), embedder)) for embedder in EMBEDDERS),
            ("floor", lambda: _floor_under_load(plan, bare)),
            ("growth", lambda: _growth(plan, folder / "growth", model)),
        ):
            print(f"measuring: {name} …", file=sys.stderr, flush=True)
            found, figures[name] = findings()
            rows += found
    return rows, figures


def _with_embedder(plan: Plan, folder: Path, servers: tuple[Server, Server], embedder: str) -> Any:
    model, bare = servers

    def measured() -> Findings:
        with service(folder / embedder, _settings(model, embedder)) as running:
            return uvloop.run(_turns(plan, (running, model, bare), embedder))

    return measured


def _settings(model: Server, embedder: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": model.model_url,
        "OPENAI_API_KEY": "none",
        "CHAT_MODEL": "fake-chat",
        "EMBEDDING_MODEL": embedder,
    }


def _starts(plan: Plan, folder: Path, model: Server) -> Findings:
    taken = list[float]()
    for number in range(plan.starts):
        with service(folder / str(number), _settings(model, "lexical")) as running:
            taken.append(running.started_in)
    row = Row("ready to serve, slowest of the starts", "<= 3 s", f"{max(taken):.2f} s", max(taken) <= 3)
    return [row], {"seconds": taken}


async def _turns(plan: Plan, servers: tuple[Server, Server, Server], embedder: str) -> Findings:
    running, model, bare = servers
    called_rows, calls = await _calls(running, model, embedder)
    latency_rows, latency = await _latency(plan, running, bare, embedder)
    load_rows, load = await _load(plan, running, model, embedder)
    return [*latency_rows, *called_rows, *load_rows], {"calls": calls, "latency": latency, "load": load}


async def _calls(running: Server, model: Server, embedder: str) -> Findings:
    """Count the calls at the fake, turn by turn, each with its update awaited."""
    talker = Talker(await Connection.to(running.port), number=10_000)
    counter = await Connection.to(model.port)
    await counter.get("/calls")
    seen = list[dict[str, int]]()
    for _ in range(WINDOW + 3):
        await talker.turn(wait_for_memory=True)
        _, calls = await counter.get("/calls")
        seen.append(_before_and_after(calls))
    talker.connection.close()
    counter.close()
    within, beyond = seen[:WINDOW], seen[WINDOW + 1 :]
    chats = {(turn["chat before"], turn["extraction after"], turn["others"]) for turn in seen}
    early = max(turn["embedding before"] for turn in within)
    rows = [
        Row("chat calls before / after the reply", "1 / 1", _each(chats), chats == {(1, 1, 0)}),
        Row("embedding calls before the reply, nothing beyond the window", "0", str(early), early == 0),
    ]
    wanted = 0 if embedder == "lexical" else 1
    rows.append(Row("the same, past the window", f"{wanted}", _each({(turn["embedding before"],) for turn in beyond})))
    return _of(embedder, rows), {"turns": seen}


def _before_and_after(calls: list[dict[str, Any]]) -> dict[str, int]:
    """A call belongs before the reply if it came before the chat call was answered: the reply needs that answer."""
    replied = max((call["answered"] for call in calls if call["kind"] == "chat"), default=0.0)
    found = {"chat before": 0, "extraction after": 0, "embedding before": 0, "embedding after": 0, "others": 0}
    for call in calls:
        place = f"{call['kind']} {'before' if call['arrived'] < replied else 'after'}"
        found[place if place in found else "others"] += 1
    return found


def _each(counts: set[tuple[int, ...]]) -> str:
    return ", ".join(" / ".join(str(number) for number in count[:2]) for count in sorted(counts))


async def _latency(plan: Plan, running: Server, bare: Server, embedder: str) -> Findings:
    """One user at a time, in a thread that reaches beyond the window, in alternation with the floor."""
    talkers = [Talker(await Connection.to(server.port), number=20_000) for server in (running, bare)]
    for _ in range(WINDOW + 1):
        await asyncio.gather(*(talker.turn() for talker in talkers))
    own, low = await one_by_one(talkers, turns=plan.turns)
    for talker in talkers:
        talker.connection.close()
    over = (median(own) - median(low)) * 1000
    most = MOST_OVER_FLOOR_MS[embedder]
    figure = f"{median(own) * 1000:.1f} ms = floor {median(low) * 1000:.1f} + {over:.1f}"
    row = Row("reply p50, one user, past the window", f"<= floor + {most:.0f} ms", figure, over <= most)
    return _of(embedder, [row]), {"service": own, "floor": low}


async def _load(plan: Plan, running: Server, model: Server, embedder: str) -> Findings:
    """Many users at once; CPU and prompt tokens are those of the turns and of their updates, to the last one."""
    counter = await Connection.to(model.port)
    await counter.get("/calls")
    resident, cpu = running.resident_mb, running.cpu_seconds
    load = await many_users(running.port, users=plan.users, seconds=plan.seconds)
    updates = await updates_of(running.port, load, seconds=6 * UPDATES_WITHIN)
    cpu, grown = running.cpu_seconds - cpu, running.resident_mb
    _, calls = await counter.get("/calls")
    counter.close()
    tokens = {kind: _tokens(calls, kind) / max(1, load.turns) for kind in ("chat", "extraction", "embedding")}
    done = updates.ended == {"done": load.turns}
    rows = [
        Row(f"{plan.users} users for {plan.seconds:.0f} s", ">= 40 turns/s", f"{load.rate:.1f} turns/s", load.rate >= 40),
        Row("errors under that load", "0", str(len(load.errors)), not load.errors),
        Row(
            "all updates done after that load",
            f"<= {UPDATES_WITHIN:.0f} s",
            f"{updates.seconds:.1f} s ({_ended(updates.ended)} of {load.turns})",
            done and updates.seconds <= UPDATES_WITHIN,
        ),
        Row("reply p50 / p95 under that load", "", _spread(load.latencies)),
        Row("service CPU a turn, its update included", "", f"{cpu / max(1, load.turns) * 1000:.1f} ms"),
        Row("prompt tokens a turn, chat + extraction", "", f"{tokens['chat']:.0f} + {tokens['extraction']:.0f}"),
        Row("resident before / after that load", "", f"{resident:.0f} / {grown:.0f} MiB"),
    ]
    figures = {
        **_summary(load),
        "updates": asdict(updates),
        "cpu_seconds": cpu,
        "tokens_a_turn": tokens,
        "resident_mb": [resident, grown],
    }
    return _of(embedder, rows), figures


async def _under_load(plan: Plan, bare: Server) -> Findings:
    cpu = bare.cpu_seconds
    load = await many_users(bare.port, users=plan.users, seconds=min(plan.seconds, 10.0))
    cpu = (bare.cpu_seconds - cpu) / max(1, load.turns) * 1000
    rows = [
        Row("floor: turns a second, the same users", "", f"{load.rate:.1f} turns/s"),
        Row("floor: CPU a turn", "", f"{cpu:.1f} ms"),
    ]
    return rows, _summary(load)


def _floor_under_load(plan: Plan, bare: Server) -> Findings:
    return uvloop.run(_under_load(plan, bare))


def _growth(plan: Plan, folder: Path, model: Server) -> Findings:
    resident, started = dict[int, float](), dict[int, float]()

    def at_size(messages: int) -> None:
        with service(folder, _settings(model, "lexical")) as running:
            resident[messages], started[messages] = running.resident_mb, running.started_in

    read = uvloop.run(grow(folder / "data", sizes=plan.sizes, times=plan.reads, at_size=at_size))
    first, last = read[0], read[-1]
    rows = [
        Row(f"resident after start, {first.messages:,} messages", "< 200 MiB", _mib(resident, first.messages), resident[first.messages] < 200),
        Row(f"the same, {last.messages:,} messages", "", _mib(resident, last.messages)),
        Row(f"ready to serve with {last.messages:,} messages", "<= 3 s", f"{started[last.messages]:.2f} s", started[last.messages] <= 3),
    ]
    for part in ("window", "search"):
        before, after = getattr(first, part), getattr(last, part)
        figure = " → ".join(f"{getattr(at, part):.2f}" for at in read) + f" ms ({(after / before - 1) * 100:+.0f} %)"
        what = f"{part} p50 as all messages grow, {first.messages:,} to {last.messages:,}"
        rows.append(Row(what, "flat within 20 %", figure, after <= before * 1.2))
    return rows, {"reads": [asdict(at) for at in read], "resident_mb": resident, "start_seconds": started}


def _of(embedder: str, rows: list[Row]) -> list[Row]:
    return [Row(f"{EMBEDDERS[embedder]}: {row.what}", row.target, row.figure, row.passed) for row in rows]


def _tokens(calls: list[dict[str, Any]], kind: str) -> int:
    return sum(call["tokens"] for call in calls if call["kind"] == kind)


def _ended(ended: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(ended.items())) or "none"


def _spread(seconds: list[float]) -> str:
    if len(seconds) < 2:
        return "too few turns"
    return f"{median(seconds) * 1000:.0f} / {quantiles(seconds, n=20)[-1] * 1000:.0f} ms"


def _summary(load: Load) -> dict[str, Any]:
    return {"turns": load.turns, "seconds": load.seconds, "errors": load.errors[:20], "spread": _spread(load.latencies)}


def _mib(resident: dict[int, float], messages: int) -> str:
    return f"{resident[messages]:.0f} MiB"


if __name__ == "__main__":
    main()
