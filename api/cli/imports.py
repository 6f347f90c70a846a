"""`recollect import`: imports a source into the memory, with a progress bar."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from recollect.api.cli.import_bodies import Bodies, Body
from recollect.api.cli.owner import read_answer, service
from recollect.api.routes.imports import ImportAnswer
from recollect.memory.opening.opening import open_memory
from recollect.memory.transfer.import_batch import FailedLine
from recollect.memory.transfer.importing import MOST_FAILED, ImportResult, import_lines
from recollect.memory.transfer.sources.named_source import Source, open_source
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import check_id

Told = Callable[[int], None]
MOST_SHOWN = 20
ASK_SECONDS = 1.0
"""How often an import that goes on behind its answer is asked about."""
NO_USER = "user_id is missing."


def import_source(config: MemoryConfig, named: str, *, user_id: str | None, learn: bool) -> int:
    """Import and show the result; return the exit code: 1 where lines failed, or nothing was recognised.

    Raises:
        InvalidRequest: there is no such source, it is the service's own data, or `user_id` is none.
    """
    if user_id is not None:
        check_id("--user", user_id)
    source = open_source(named, config, user_id=user_id)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("importing", total=source.total)

        def tell(number: int) -> None:
            bar.update(task, completed=number)

        with service(config, may_be_new=True) as client:
            if client is None:
                result = asyncio.run(_import(config, source, learn, tell))
            else:
                result = asyncio.run(_send(client, source, learn, tell))
        bar.update(task, completed=source.total or 1, total=source.total or 1)
    show_result(result, learn=learn)
    return 1 if result.failed or not show_holdings(source) else 0


async def _import(config: MemoryConfig, source: Source, learn: bool, tell: Told) -> ImportResult:
    async with open_memory(config) as memory:
        return await import_lines(memory, source.lines, learn=learn, progress=tell)


async def _send(client: httpx.Client, source: Source, learn: bool, tell: Told) -> ImportResult:
    """Let the service import, one body at a time."""
    sums, bodies = _Sums(), Bodies()
    done = 0
    parameters = {"learn": "true" if learn else "false"}
    async for body in bodies.cut(source.lines):
        response = await asyncio.to_thread(client.post, "/api/import", content=body.content, params=parameters)
        sums.add(await _ended(client, read_answer(response)), body)
        done += len(body.lines)
        tell(done)
    return sums.result(bodies)


async def _ended(client: httpx.Client, said: dict[str, object]) -> dict[str, object]:
    """Return the result of an import, whose answer `said` may be that it goes on."""
    while said.get("status") == "running":
        await asyncio.sleep(ASK_SECONDS)
        said = read_answer(await asyncio.to_thread(client.get, f"/api/import/{said['import_id']}"))
    return said


@dataclass
class _Sums:
    imported: int = 0
    known: int = 0
    failed: list[FailedLine] = field(default_factory=list[FailedLine])
    more_failed: int = 0

    def add(self, said: dict[str, object], body: Body) -> None:
        told = ImportAnswer.model_validate(said)
        self.imported += told.imported
        self.known += told.known
        self.failed += [FailedLine(body.number_of(one.line), one.error) for one in told.failed]
        self.more_failed += told.more_failed or 0

    def result(self, bodies: Bodies) -> ImportResult:
        failed = sorted([*self.failed, *bodies.failed])
        more = self.more_failed + max(0, len(failed) - MOST_FAILED)
        # The service counts pairs that overlap: they are sent one after the other.
        return ImportResult(self.imported, self.known, tuple(failed[:MOST_FAILED]), more, bodies.out_of_order)


def show_result(result: ImportResult, *, learn: bool) -> None:
    """Show the result as a sentence, and the first lines that failed."""
    console = Console(soft_wrap=True)
    failed = len(result.failed) + result.more_failed
    console.print(f"Imported {result.imported}, {result.known} known already, {failed} failed.", highlight=False)
    if result.out_of_order:
        console.print(
            f"{result.out_of_order} lines were out of order; each thread is in the order of its times.", highlight=False
        )
    if learn and result.imported:
        console.print("The turns are learned from in the background, while the service runs.")
    for line in result.failed[:MOST_SHOWN]:
        console.print(f"line {line.line}: {line.error}", markup=False, highlight=False)
    if any(line.error == NO_USER for line in result.failed):
        console.print("Say whose it is with --user.")
    if failed > MOST_SHOWN:
        console.print(f"… and {failed - MOST_SHOWN} more.")


def show_holdings(source: Source) -> bool:
    """Name the source's content that no importer can read; tell whether anything else was there."""
    console = Console(soft_wrap=True)
    holdings = source.holdings
    if holdings.skipped:
        console.print(f"Not read: {', '.join(holdings.skipped)}.", markup=False, highlight=False)
    if not holdings.read:
        console.print(f"Nothing was recognised: SOURCE has none of {source.expected}.", markup=False, highlight=False)
    return bool(holdings.read)
