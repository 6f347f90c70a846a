"""`recollect import`: brings what people have into the memory, with a progress bar."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from api.commands.import_bodies import Bodies, Body
from api.commands.owner import answer, service
from api.imports import ImportAnswer
from memory.import_batch import FailedLine
from memory.import_sources import Source, open_source
from memory.importing import MOST_FAILED, ImportResult, import_lines
from memory.mem_config import MemoryConfig
from memory.opening import open_memory
from memory.scope import check_id

Told = Callable[[int], None]
MOST_SHOWN = 20
NO_USER = "user_id is missing."


def import_source(config: MemoryConfig, named: str, *, user_id: str | None, learn: bool) -> int:
    """Import and show what it came to; the exit code: 1 where lines failed.

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
    show(result, learn=learn)
    return 1 if result.failed else 0


async def _import(config: MemoryConfig, source: Source, learn: bool, tell: Told) -> ImportResult:
    async with open_memory(config) as memory:
        return await import_lines(memory, source.lines, learn=learn, progress=tell)


async def _send(client: httpx.Client, source: Source, learn: bool, tell: Told) -> ImportResult:
    """Let the service import, a part at a time."""
    sums, bodies = _Sums(), Bodies()
    parameters = {"learn": "true" if learn else "false"}
    async for body in bodies.cut(source.lines):
        response = await asyncio.to_thread(client.post, "/api/import", content=body.content, params=parameters)
        sums.add(answer(response), body)
        tell(body.last)
    return sums.result(bodies.failed)


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

    def result(self, unreadable: list[FailedLine]) -> ImportResult:
        failed = sorted([*self.failed, *unreadable])
        more = self.more_failed + max(0, len(failed) - MOST_FAILED)
        return ImportResult(self.imported, self.known, tuple(failed[:MOST_FAILED]), more)


def show(result: ImportResult, *, learn: bool) -> None:
    """The result as a sentence, and the first lines that failed."""
    console = Console(soft_wrap=True)
    failed = len(result.failed) + result.more_failed
    console.print(f"Imported {result.imported}, {result.known} known already, {failed} failed.", highlight=False)
    if learn and result.imported:
        console.print("The turns are learned from in the background, while the service runs.")
    for line in result.failed[:MOST_SHOWN]:
        console.print(f"line {line.line}: {line.error}", markup=False, highlight=False)
    if any(line.error == NO_USER for line in result.failed):
        console.print("Say whose it is with --user.")
    if failed > MOST_SHOWN:
        console.print(f"… and {failed - MOST_SHOWN} more.")
