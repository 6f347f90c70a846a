"""Plots recall against tokens."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.recalling.measures import BUDGET, Outcome, curve

BUDGETS = range(50, 1_501, 25)


def plot(path: Path, passes: Mapping[str, Sequence[Outcome]]) -> None:
    """Write a PNG with a line for each pass, labelled with its name."""
    from matplotlib.figure import Figure

    figure = cast("Any", Figure(figsize=(8, 5)))  # matplotlib's own types leave much unknown
    axes = figure.add_subplot()
    for name, outcomes in passes.items():
        axes.plot(BUDGETS, curve(outcomes, BUDGETS), label=name)
    axes.axvline(BUDGET, color="0.7", linewidth=0.8)
    axes.set_xlabel("tokens of what was found")
    axes.set_ylabel("evidence recalled, %")
    axes.set_title("LoCoMo: evidence within a budget of tokens")
    axes.set_xlim(0, BUDGETS[-1])
    axes.set_ylim(0, 100)
    axes.grid(visible=True, color="0.9")
    axes.legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
