"""The work of the embedder commands: through the service that has the stores open, or with the stores alone."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from recollect.api.cli.owner import read_answer, service
from recollect.api.cli.reindex import follow
from recollect.api.cli.terminal.plain_text import safe_json, safe_line
from recollect.api.cli.terminal.tables import plain_console, table
from recollect.memory.index.embedder_change import EmbedderChange
from recollect.memory.opening.embedders import spec_of
from recollect.memory.opening.stores import open_stores
from recollect.memory.ports.embedder import EmbedderSpec
from recollect.memory.values.mem_config import MemoryConfig

ROUTE = "/api/admin/embedder"
WORDS = {
    "filling": "is being prepared",
    "ready": "is ready",
    "switched": "served before",
    "dropping": "is being deleted",
}

Json = dict[str, Any]
Told = Callable[[int, int], None]


def named(config: MemoryConfig, model: str | None, dimensions: int | None, path: Path | None) -> EmbedderSpec:
    """Return the embedder that the command names, else the one of its settings."""
    if model is not None:
        config = config.replace(embedding_model=model, embedding_dimensions=None, embedding_model_path=None)
    if dimensions is not None:
        config = config.replace(embedding_dimensions=dimensions)
    if path is not None:
        config = config.replace(embedding_model_path=path.absolute())
    return spec_of(config)


def prepare_collection(config: MemoryConfig, spec: EmbedderSpec) -> None:
    """Fill the collection of `spec`, with a progress bar, and show the report."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=plain_console(stderr=True)) as bar:
        task = bar.add_task("preparing", total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        with service(config) as client:
            if client is None:
                report = asyncio.run(_prepared_alone(config, spec, tell))
            else:
                request = {"model": spec.model, "dimensions": spec.dimensions, "path": spec.path}
                report = follow(client, f"{ROUTE}/prepare", request, tell)
        bar.update(task, completed=report["points"], total=report["points"])
    said = f"is ready: {report['points']} points, {report['embedded']} of them embedded now"
    plain_console().print(safe_line(f"{spec.model} {said}; run `recollect embedder switch`."))


async def _prepared_alone(config: MemoryConfig, spec: EmbedderSpec, tell: Told) -> Json:
    async with open_stores(config) as stores:
        change = EmbedderChange(stores.store, stores.sides)
        try:
            running = await change.prepare(spec)
            async for done, total in running.progress():
                tell(done, total)
            return (await running.outcome()).as_json()
        finally:
            await change.close()


def act(config: MemoryConfig, verb: str) -> Json:
    """Carry out `status`, `switch`, `back` or `drop`, and return the status then."""
    with service(config) as client:
        if client is None:
            return asyncio.run(_alone(config, verb))
        return read_answer(client.get(ROUTE) if verb == "status" else client.post(f"{ROUTE}/{verb}"))


async def _alone(config: MemoryConfig, verb: str) -> Json:
    async with open_stores(config) as stores:
        change = EmbedderChange(stores.store, stores.sides)
        match verb:
            case "switch":
                return await change.switch()
            case "back":
                return await change.back()
            case "drop":
                return await change.drop()
            case _:
                return await change.status()


def show_status(status: Json, *, as_json: bool) -> None:
    """Print the status, as a table or as JSON."""
    if as_json:
        typer.echo(safe_json(status))
        return
    made = table("embedder", "", ">points", "collection")
    for place, role in (("serving", "serves"), ("other", WORDS.get(status["stage"], ""))):
        if (found := status[place]) is not None:
            made.add_row(safe_line(found["model"]), role, str(found["points"]), safe_line(found["collection"]))
    said = f"A whole collection has {status['expected']} points."
    if (progress := status["progress"]) is not None:
        said += f" {progress['done']} of {progress['total']} are prepared."
    if status["configured"] != status["serving"]["model"]:
        said += f" EMBEDDING_MODEL is {status['configured']}; the embedder that was switched to goes before it."
    plain_console().print(Group(made, Text(said)))
