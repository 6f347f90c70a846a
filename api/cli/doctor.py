"""`recollect doctor`: shows the doctor's report, as a table or as JSON."""

import asyncio
import json
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from recollect.api.cli.owner import read_answer, service
from recollect.memory.index.doctor import examine
from recollect.memory.opening.stores import open_stores
from recollect.memory.values.mem_config import MemoryConfig

MOST_ROWS = 50
LEAST_WIDTH = 120
"""The table's least width, so that its headings are not cut in a narrow terminal or without one."""
COLUMNS = (
    *("messages", "facts", "summaries", "passages", "points", "missing", "orphaned", "wrong_fingerprint"),
    *("pending", "failed"),
)
WRONG = frozenset({"missing", "orphaned", "wrong_fingerprint", "failed"})


def run_doctor(config: MemoryConfig, *, as_json: bool) -> int:
    """Examine and show; return the exit code: 0 where nothing is wrong, else 1."""
    with service(config) as client:
        report = asyncio.run(_examine(config)) if client is None else read_answer(client.get("/api/admin/doctor"))
    if as_json:
        typer.echo(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        show_findings(report, Console(soft_wrap=True, width=max(LEAST_WIDTH, Console().width)))
    return 0 if report["healthy"] else 1


async def _examine(config: MemoryConfig) -> dict[str, Any]:
    async with open_stores(config) as stores:
        report = await examine(stores.store, stores.index, stores.embedder, now=stores.clock())
        return report.as_json()


def show_findings(report: dict[str, Any], console: Console) -> None:
    """Show the users with findings, the totals, and what to do."""
    table = Table("user", box=SIMPLE_HEAD)
    for name in (*COLUMNS, "oldest_pending"):
        table.add_column(name.replace("_", " "), justify="right")
    telling = [user for user in report["users"] if user["pending"] or any(user[name] for name in WRONG)]
    for user in telling[:MOST_ROWS]:
        table.add_row(user["user_id"], *_cells(user))
    table.add_section()
    table.add_row(f"all {len(report['users'])}", *_cells(report["totals"]))
    console.print(table)
    if len(telling) > MOST_ROWS:
        console.print(f"… and {len(telling) - MOST_ROWS} more users; --json shows them all.")
    console.print("[green]healthy[/green]" if report["healthy"] else "[red]something is wrong[/red]")
    for sentence in report["advice"]:
        console.print(f"* {sentence}", markup=False, highlight=False)


def _cells(found: dict[str, Any]) -> list[str]:
    cells = [f"[red]{found[name]}[/red]" if name in WRONG and found[name] else str(found[name]) for name in COLUMNS]
    waits = found["oldest_pending_seconds"]
    return [*cells, "" if waits is None else f"{waits:.0f} s"]
