"""A benchmark's report: rows of target and figure, shown as a table and written as JSON, without machine paths."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report. `passed` is None where it has no target."""

    what: str
    target: str
    figure: str
    passed: bool | None = None

    @property
    def verdict(self) -> str:
        """Return the result in a word."""
        return "" if self.passed is None else "pass" if self.passed else "MISSED"


def machine() -> dict[str, Any]:
    """Describe the machine as far as it matters; `load` is its load average before the run began."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2) if sys.platform != "win32" else None,
    }


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    cells = [("what", "target", "figure", ""), *((row.what, row.target, row.figure, row.verdict) for row in rows)]
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)) + " |" for cell in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def conclusion(rows: Sequence[Row]) -> str:
    """Say whether every target was reached, and which were missed."""
    missed = [row.what for row in rows if row.passed is False]
    return f"{len(missed)} missed: {'; '.join(missed)}." if missed else "Every target was reached."


def write(path: Path, *, rows: Sequence[Row], figures: Mapping[str, Any], ran_on: Mapping[str, Any]) -> None:
    """Write the rows and the raw figures."""
    shown = [{**asdict(row), "verdict": row.verdict} for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"machine": ran_on, "rows": shown, "figures": figures}, indent=1) + "\n", encoding="utf-8"
    )
