"""Measures the cost of a turn: `python -m benchmarks.turn` (`make bench`), seven minutes; `--quick` is a smoke test.

Every process is real and on loopback: the fake model (chat 300 ms, embedding 50 ms), a bare endpoint that makes the one
chat call (the floor), a bare LangGraph graph, and `recollect serve`. A missed target is printed and does not fail the
run.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from benchmarks.answering import TALKS, Answering, Reference, Talk, reference_under_load
from benchmarks.growth import grow
from benchmarks.plan import FULL, QUICK, Findings, Plan
from benchmarks.processes import Server, bare_graph, fake_model, floor, help_seconds, service
from benchmarks.report import Row, conclusion, machine, table, write

RESULTS = Path(__file__).parent / "results" / "turn.json"
MOST_START_SECONDS = 1.0
MOST_HELP_SECONDS = 0.3
MOST_RESIDENT_MIB = (120.0, 250.0)
"""After a start with the fewest, and with the most messages."""
FLAT = 1.2


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
    print(f"\n{conclusion(rows)}")
    write(given.json, rows=rows, figures=figures, ran_on=ran_on)


def measure(plan: Plan, folder: Path) -> Findings:
    """Run all measurements, one after the other, so that no two share the machine."""
    rows, figures = list[Row](), dict[str, Any]()
    references = dict[str, Reference]()
    with ExitStack() as stack:
        model = stack.enter_context(fake_model())
        bare = stack.enter_context(floor(model))
        graph = stack.enter_context(bare_graph(model))
        short = stack.enter_context(bare_graph(model, window=FULL.window))

        def reference(name: str, server: Server) -> Findings:
            references[name], findings = uvloop.run(reference_under_load(plan, name, server))
            return findings

        def answering(talk: Talk) -> Findings:
            with service(folder / talk.name, plan.settings(model, embedder=talk.embedder)) as running:
                known = references["floor"], references["bare graph"]
                return uvloop.run(Answering(plan, talk, running, model, bare, *known).measure())

        measurements: dict[str, Callable[[], Findings]] = {
            "start": lambda: _starts(plan, folder / "start", model),
            "floor": partial(reference, "floor", bare),
            "bare graph": partial(reference, "bare graph", graph),
            "bare graph, ten turns": partial(reference, "bare graph, ten turns", short),
            **{talk.name: partial(answering, talk) for talk in TALKS},
            "growth": lambda: _growth(plan, folder / "growth", model),
        }
        for name, measured in measurements.items():
            print(f"measuring: {name} …", file=sys.stderr, flush=True)
            found, figures[name] = measured()
            rows += found
    return rows, figures


def _starts(plan: Plan, folder: Path, model: Server) -> Findings:
    taken = list[float]()
    for number in range(plan.starts):
        with service(folder / str(number), plan.settings(model, embedder="lexical")) as running:
            taken.append(running.started_in)
    helped = [help_seconds() for _ in range(plan.starts)]
    rows = [_started(f"slowest of {plan.starts} starts", max(taken)), _helped(helped)] if taken else []
    return rows, {"seconds": taken, "help_seconds": helped}


def _growth(plan: Plan, folder: Path, model: Server) -> Findings:
    resident, started = dict[int, float](), dict[int, float]()

    def at_size(messages: int) -> None:
        if messages in (plan.sizes[0], plan.sizes[-1]):
            with service(folder, plan.settings(model, embedder="lexical")) as running:
                resident[messages], started[messages] = running.resident_mb, running.started_in

    read = uvloop.run(grow(folder / "data", sizes=plan.sizes, times=plan.reads, at_size=at_size))
    first, last = plan.sizes[0], plan.sizes[-1]
    rows = [
        *(_resident(size, resident[size], most) for size, most in zip((first, last), MOST_RESIDENT_MIB, strict=True)),
        _started(f"with {last:,} messages", started[last]),
        _flat("window", [(at.messages, at.window) for at in read]),
        _flat("search", [(at.messages, at.search) for at in read]),
    ]
    return rows, {"reads": [asdict(at) for at in read], "resident_mb": resident, "start_seconds": started}


def _started(how: str, seconds: float) -> Row:
    return Row(
        f"ready to serve, {how}", f"<= {MOST_START_SECONDS:.0f} s", f"{seconds:.2f} s", seconds <= MOST_START_SECONDS
    )


def _helped(seconds: Sequence[float]) -> Row:
    middle = median(seconds)
    return Row("recollect --help, median", f"<= {MOST_HELP_SECONDS} s", f"{middle:.2f} s", middle <= MOST_HELP_SECONDS)


def _resident(messages: int, mib: float, most: float) -> Row:
    return Row(f"resident after start, {messages:,} messages", f"<= {most:.0f} MiB", f"{mib:.0f} MiB", mib <= most)


def _flat(part: str, medians: Sequence[tuple[int, float]]) -> Row:
    """Compare sizes: a cost is flat if the largest takes at most 20 % more than the smallest."""
    (first, before), (last, after) = medians[0], medians[-1]
    figure = " → ".join(f"{median:.2f}" for _, median in medians) + f" ms ({(after / before - 1) * 100:+.0f} %)"
    what = f"{part} p50, one user's, while all messages grow from {first:,} to {last:,}"
    return Row(what, "flat within 20 %", figure, after <= before * FLAT)


if __name__ == "__main__":
    main()
