"""`recollect eval`: measures what searches of a user's own memory find, by a file of cases."""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

from recollect.api.cli.owner import read_answer, service
from recollect.api.cli.terminal.plain_text import line as one_line
from recollect.api.cli.terminal.plain_text import safe_json, safe_line
from recollect.api.cli.terminal.tables import plain_console, table
from recollect.api.schemas.evaluation import ComparedSettings, EvalCase, EvalRequest
from recollect.memory.evaluation.cases import MOST_CASES
from recollect.memory.evaluation.outcome import MEASURES
from recollect.memory.evaluation.proposing import MOST_PROPOSED
from recollect.memory.opening.evaluating import open_evaluation
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig

ROUTE = "/api/admin/eval"
STANDARD_INPUT = Path("-")
MOST_ROWS = 50

Json = dict[str, Any]
Typed = Callable[[Mapping[str, str]], Mapping[str, Any]]
"""Returns the values of settings as the settings read them; raises ConfigurationError where one is wrong."""


@frozen
class CaseFile:
    """The cases of a file; `numbers` are the lines at which they stand."""

    cases: Sequence[EvalCase]
    numbers: Sequence[int]


def read_lines(path: Path, *, longest: int) -> CaseFile:
    """Read a file of cases, or the standard input for `-`; empty lines are skipped.

    A query may have `longest` characters.

    Raises:
        ConfigurationError: the file cannot be read, has no case or too many, or a line is none; it names the line.
    """
    try:
        text = sys.stdin.read() if path == STANDARD_INPUT else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read ({type(error).__name__}); name a file of cases.") from error
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not 1 <= len(numbered) <= MOST_CASES:
        raise ConfigurationError(f"{path} has {len(numbered)} cases; it must have 1 to {MOST_CASES:,}.")
    return CaseFile([_read(line, number, longest) for number, line in numbered], [number for number, _ in numbered])


def _read(line: str, number: int, longest: int) -> EvalCase:
    try:
        case = EvalCase.model_validate(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"Line {number} is no case: {_problem(error)}.") from None
    if len(case.query) > longest:
        raise ConfigurationError(f"Line {number} is no case: query must have 1 to {longest:,} characters.")
    return case


def _problem(error: Exception) -> str:
    """Say what is wrong with a line, without its text."""
    if not isinstance(error, ValidationError):
        return 'it must be a JSON object such as {"user_id": "ada", "query": "…", "expect": ["…"]}'
    first = error.errors()[0]
    field = one_line(".".join(map(str, first["loc"])))
    return f"{field} {first['msg']}" if field else first["msg"]


def compared_settings(given: Mapping[str, str | None], typed: Typed) -> Json:
    """Return the settings of a file, for the request; `typed` reads their values.

    Raises:
        ConfigurationError: one is no setting of recall, or its value is wrong; the error names it.
    """
    allowed = {name.upper() for name in ComparedSettings.model_fields}
    if others := sorted(name.upper() for name in given if name.upper() not in allowed):
        raise ConfigurationError(
            f"--compare cannot compare {', '.join(map(one_line, others))}; it takes {', '.join(sorted(allowed))}."
        )
    if not given:
        raise ConfigurationError(f"--compare names no setting; it takes {', '.join(sorted(allowed))}.")
    values = typed({name.lower(): value for name, value in given.items() if value})
    return {name.lower(): _plain(values.get(name.lower())) for name in given}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def evaluate(config: MemoryConfig, lines: CaseFile, compare: Json | None) -> Json:
    """Run the cases, in the service that has DATA_DIR open or without one, and return the report with line numbers."""
    cases = [case.model_dump(mode="json", exclude_none=True) for case in lines.cases]
    request = {"cases": cases} if compare is None else {"cases": cases, "compare": compare}
    with service(config) as client:
        if client is None:
            report = asyncio.run(_alone(config, EvalRequest.model_validate(request)))
        else:
            report = read_answer(client.post(ROUTE, json=request))
    for part in (report, report.get("compared") or {}):
        for miss in [*part.get("misses", ()), *part.get("unknown", ())]:
            miss["line"] = lines.numbers[miss.pop("case") - 1]
    return report


async def _alone(config: MemoryConfig, request: EvalRequest) -> Json:
    cases = [one.case(number) for number, one in enumerate(request.cases, 1)]
    async with open_evaluation(config) as evaluation:
        if request.compare is None:
            return await evaluation.run(cases)
        return await evaluation.compare(cases, request.compare.changes())


def propose(config: MemoryConfig, user_id: str, count: int) -> None:
    """Print proposed cases, one a line."""
    with service(config) as client:
        if client is None:
            items = asyncio.run(_proposed_alone(config, user_id, count))
        else:
            query: dict[str, str | int] = {"user_id": user_id, "count": count}
            items = read_answer(client.get(f"{ROUTE}/cases", params=query))["items"]
    for item in items:
        typer.echo(json.dumps(item))  # ASCII: no character of it moves a terminal's cursor
    if len(items) < min(count, MOST_PROPOSED):
        typer.echo(f"{len(items)} cases: the history of this user gives no more.", err=True)


async def _proposed_alone(config: MemoryConfig, user_id: str, count: int) -> list[Json]:
    async with open_evaluation(config) as evaluation:
        return [case.as_json() for case in await evaluation.propose(user_id, count=count)]


def show_report(report: Json, *, as_json: bool) -> None:
    """Print the report, as tables or as JSON."""
    if as_json:
        typer.echo(safe_json(report))
        return
    plain_console().print(_figures(report), _misses(report))


def _figures(report: Json) -> RenderableType:
    compared = report.get("compared")
    made = table("settings", *(f">{name}" for name in MEASURES))
    made.add_row("present", *(_figure(report, name) for name in MEASURES))
    if compared is not None:
        made.add_row("compared", *(_figure(compared, name) for name in MEASURES))
        made.add_row("difference", *(_difference(report["difference"][name]) for name in MEASURES))
    said = f"{report['cases']} cases; figures in percent"
    return Group(made, Text(said + (", with intervals of 95 %" if compared is not None else "") + "."))


def _figure(report: Json, name: str) -> str:
    intervals: Json = report.get("intervals") or {}
    interval = intervals.get(name)
    bounds = "" if interval is None else f" ({interval['low']:.1f} to {interval['high']:.1f})"
    return f"{report[name]:.1f}{bounds}"


def _difference(found: Json) -> str:
    return f"{found['mean']:+.1f} ({found['low']:+.1f} to {found['high']:+.1f})"


def _misses(report: Json) -> RenderableType:
    if not report["misses"]:
        return Text("All that is expected is among the first 10 hits.")
    made = table(">line", "expected", ">rank", "step", "reason", title="Not among the first 10 hits")
    misses = report["misses"]
    if len(misses) > MOST_ROWS:  # an unknown id is a fault of the file, so it goes before other misses
        misses = sorted(misses, key=lambda miss: miss["stage"] != "unknown")
    for miss in misses[:MOST_ROWS]:
        rank = "" if miss["rank"] is None else str(miss["rank"])
        made.add_row(
            str(miss["line"]), safe_line(miss["id"]), rank, safe_line(miss["stage"]), safe_line(miss["reason"] or "")
        )
    more = len(report["misses"]) - MOST_ROWS
    return Group(made, Text(f"… and {more} more; --json shows them all.")) if more > 0 else made
