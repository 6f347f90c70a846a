"""`recollect reindex`: rebuilds the index from the store, with a progress bar."""

import asyncio
import json
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from recollect.api.cli.owner import check, read_answer, service
from recollect.memory.index.indexing import Progress as Told
from recollect.memory.index.reindexing import reindex as rebuild
from recollect.memory.opening.stores import open_stores
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import GLOBAL_USER, check_id


def run_reindex(config: MemoryConfig, *, user_id: str | None, dry_run: bool) -> None:
    """Rebuild the index and show the report.

    Raises:
        InvalidRequest: `user_id` is none.
    """
    if user_id is not None and user_id != GLOBAL_USER:
        check_id("--user", user_id)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reindexing", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        with service(config) as client:
            if client is None:
                report = asyncio.run(_rebuild(config, user_id, dry_run, tell))
            else:
                report = follow(client, "/api/admin/reindex", {"user_id": user_id, "dry_run": dry_run}, tell)
        bar.update(task, completed=report["points"], total=report["points"])
    Console(soft_wrap=True).print(summary(report), highlight=False)


async def _rebuild(config: MemoryConfig, user_id: str | None, dry_run: bool, tell: Told) -> dict[str, Any]:
    async with open_stores(config) as stores:
        report = await rebuild(
            stores.store, stores.index, stores.embedder, user_id=user_id, dry_run=dry_run, progress=tell
        )
        return report.as_json()


def follow(client: httpx.Client, route: str, request: dict[str, Any], tell: Told) -> dict[str, Any]:
    """Send `request`, follow the progress, and return the report. The work goes on if this command is stopped."""
    with client.stream("POST", route, json=request) as response:
        if not response.is_success:
            response.read()
            read_answer(response)
        for line in response.iter_lines():
            said = check(json.loads(line))
            if "report" in said:
                report: dict[str, Any] = said["report"]
                return report
            tell(said["done"], said["total"])
    raise httpx.RemoteProtocolError("the stream ended early")


def summary(report: dict[str, Any]) -> str:
    """Return the report as a sentence."""
    whose = f" of {report['user_id']}" if report["user_id"] else ""
    if report["dry_run"]:
        return (
            f"Would make {report['points']} points{whose} anew and drop {report['removed']} that no document calls for."
        )
    return (
        f"Reindexed {report['points']} points{whose}: {report['embedded']} embedded, {report['reused']} reused, "
        f"{report['removed']} dropped that no document calls for."
    )
