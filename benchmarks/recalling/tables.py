"""The tables of the recall benchmark: figures by pipeline beside published ones, and targets. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.recalling.measures import AT, BUDGET, Figures, Outcome, figures
from benchmarks.report import Row

LEXICAL = "lexical"
PUBLISHED = ("DRAGON over turns (LoCoMo paper, table 3)", {5: 56.7, 10: 66.2, 25: 76.7, 50: 82.7})
FACTS = "with extracted facts"
TARGETS = {5: 76.0, 10: 84.5, 25: 90.5}
TARGET_WITHIN = 89.5
TARGET_LEXICAL = 77.0
MOST_LOST_BY_SCOPE = 0.3


@dataclass(slots=True)
class Found:
    """Passes by their names, the cross-validated ones, and those that a turn of the last session would make."""

    passes: dict[str, list[Outcome]] = field(default_factory=dict[str, list[Outcome]])
    folds: dict[str, list[Outcome]] = field(default_factory=dict[str, list[Outcome]])
    in_last_session: dict[str, list[Outcome]] = field(default_factory=dict[str, list[Outcome]])


def short_name(model: str) -> str:
    """Return the name that the tables show of an embedding model."""
    return "no embedding model" if model == LEXICAL else model.rpartition("/")[2].removeprefix("fastembed:")


def recall_table(found: Found) -> str:
    """Return recall beside the published row, in percent, as a Markdown table; categories at 10."""
    by_name = {name: figures(outcomes) for name, outcomes in found.passes.items()}
    by_name |= {f"{name}; weights of other conversations": figures(outcomes) for name, outcomes in found.folds.items()}
    categories = list(next(iter(by_name.values())).by_category)
    head = [
        "pipeline",
        *(f"R@{k}" for k in AT),
        f"R in {BUDGET:,} tokens",
        *(f"{c} @10" for c in categories),
        "p50 / p95 ms",
    ]
    name, published = PUBLISHED
    lines = [head, [name, *(f"{published[k]:.1f}" for k in AT), *[""] * (len(categories) + 2)]]
    lines += [[name, *_cells(row, categories)] for name, row in by_name.items()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def session_table(found: Found) -> str:
    """Return how often one, and all, of the sessions with evidence are among the first, as a Markdown table."""
    lines = ["| pipeline | any in 5 | any in 10 | all in 5 | all in 10 |", "|---|---|---|---|---|"]
    for name, row in ((name, figures(outcomes)) for name, outcomes in found.passes.items()):
        shown = [*row.any_session.values(), *row.all_sessions.values()]
        lines.append(f"| {name} | {' | '.join(f'{value:.1f}' for value in shown)} |")
    return "\n".join(lines)


def scope_table(found: Found) -> str:
    """Return recall of a turn in the last session with the scope `auto`, and how that differs from `user`."""
    head = [f"R@{k}" for k in AT] + [f"R in {BUDGET:,} tokens"]
    lines = [f"| scope auto, from the last session | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for name, outcomes in found.in_last_session.items():
        here, all_of_user = figures(outcomes), figures(found.passes[name])
        pairs = [*((here.at[k], all_of_user.at[k]) for k in AT), (here.within, all_of_user.within)]
        lines.append(f"| {name} | {' | '.join(f'{own:.1f} ({own - other:+.2f})' for own, other in pairs)} |")
    return "\n".join(lines)


def _cells(row: Figures, categories: Sequence[str]) -> list[str]:
    recalls = [*(row.at[k] for k in AT), row.within, *(row.by_category[name] for name in categories)]
    times = f"{row.p50:.1f} / {row.p95:.1f}" if row.p95 else ""  # folds are not timed
    return [*(f"{value:.1f}" for value in recalls), times]


def targets(found: Found) -> list[Row]:
    """Return the targets, measured by the pass with facts of the first embedder and without an embedding model."""
    rows = list[Row]()
    for name, outcomes in found.passes.items():
        reached, is_lexical = figures(outcomes), name.startswith(short_name(LEXICAL))
        if name.endswith(FACTS) == is_lexical:
            continue  # the facts are part of the one target, and not of the other
        wanted = {10: TARGET_LEXICAL} if is_lexical else TARGETS
        rows += [_reached(f"{name}: R@{k}", target, reached.at[k]) for k, target in wanted.items()]
        if not is_lexical:
            rows.append(_reached(f"{name}: R in {BUDGET:,} tokens", TARGET_WITHIN, reached.within))
    for name, outcomes in found.in_last_session.items():
        here, all_of_user = figures(outcomes), figures(found.passes[name])
        least = min(here.at[k] - all_of_user.at[k] for k in (5, 10, 25))
        what = f"{name}: scope auto against user, the least of R@5, R@10 and R@25"
        rows.append(Row(what, f">= -{MOST_LOST_BY_SCOPE}", f"{least:+.2f}", least >= -MOST_LOST_BY_SCOPE))
    return rows


def _reached(what: str, target: float, figure: float) -> Row:
    return Row(what, f">= {target:.1f}", f"{figure:.1f}", figure >= target)
