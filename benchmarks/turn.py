"""Measures the cost of a turn: `python -m benchmarks.turn` (`make bench`), five minutes; `--quick` is a smoke test.

Every process is real and on loopback: the fake model (chat 300 ms, embedding 50 ms), a bare endpoint that makes the one
chat call (the floor), and `recollect serve`. A missed target is printed and does not fail the run.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.answering import EMBEDDERS, Answering, floor_under_load
from benchmarks.growth import grow
from benchmarks.plan import FULL, QUICK, Findings, Plan
from benchmarks.processes import Server, fake_model, floor, service
from benchmarks.report import Row, conclusion, machine, table, write

RESULTS = Path(__file__).parent / "results" / "turn.json"
MOST_START_SECONDS = 3.0
MOST_RESIDENT_MIB = 200.0 * 1e6 / (1 << 20)
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
    with ExitStack() as stack:
        model = stack.enter_context(fake_model())
        bare = stack.enter_context(floor(model))
        measurements: dict[str, Callable[[], Findings]] = {
            "start": lambda: _starts(plan, folder / "start", model),
            **{name: _answering(plan, folder / name, model, bare) for name in EMBEDDERS},
            "floor": lambda: uvloop.run(floor_under_load(plan, bare)),
            "growth": lambda: _growth(plan, folder / "growth", model),
        }
        for name, measured in measurements.items():
            print(f"measuring: {name} …", file=sys.stderr, flush=True)
            found, figures[name] = measured()
            rows += found
    return rows, figures


def _answering(plan: Plan, folder: Path, model: Server, bare: Server) -> Callable[[], Findings]:
    embedder = folder.name

    def measured() -> Findings:
        with service(folder, plan.settings(model, embedder=embedder)) as running:
            return uvloop.run(Answering(plan, embedder, running, model, bare).measure())

    return measured


def _starts(plan: Plan, folder: Path, model: Server) -> Findings:
    taken = list[float]()
    for number in range(plan.starts):
        with service(folder / str(number), plan.settings(model, embedder="lexical")) as running:
            taken.append(running.started_in)
    rows = [_started(f"slowest of {plan.starts} starts", max(taken))] if taken else []
    return rows, {"seconds": taken}


def _growth(plan: Plan, folder: Path, model: Server) -> Findings:
    resident, started = dict[int, float](), dict[int, float]()

    def at_size(messages: int) -> None:
        if messages in (plan.sizes[0], plan.sizes[-1]):
            with service(folder, plan.settings(model, embedder="lexical")) as running:
                resident[messages], started[messages] = running.resident_mb, running.started_in

    read = uvloop.run(grow(folder / "data", sizes=plan.sizes, times=plan.reads, at_size=at_size))
    first, last = plan.sizes[0], plan.sizes[-1]
    small = resident[first] < MOST_RESIDENT_MIB
    rows = [
        Row(f"resident after start, {first:,} messages", "< 200 MB (191 MiB)", f"{resident[first]:.0f} MiB", small),
        Row(f"resident after start, {last:,} messages", "", f"{resident[last]:.0f} MiB"),
        _started(f"with {last:,} messages", started[last]),
        _flat("window", [(at.messages, at.window) for at in read]),
        _flat("search", [(at.messages, at.search) for at in read]),
    ]
    return rows, {"reads": [asdict(at) for at in read], "resident_mb": resident, "start_seconds": started}


def _started(how: str, seconds: float) -> Row:
    return Row(
        f"ready to serve, {how}", f"<= {MOST_START_SECONDS:.0f} s", f"{seconds:.2f} s", seconds <= MOST_START_SECONDS
    )


def _flat(part: str, medians: Sequence[tuple[int, float]]) -> Row:
    """Compare sizes: a cost is flat if the largest takes at most 20 % more than the smallest."""
    (first, before), (last, after) = medians[0], medians[-1]
    figure = " → ".join(f"{median:.2f}" for _, median in medians) + f" ms ({(after / before - 1) * 100:+.0f} %)"
    what = f"{part} p50, one user's, while all messages grow from {first:,} to {last:,}"
    return Row(what, "flat within 20 %", figure, after <= before * FLAT)


if __name__ == "__main__":
    main()
