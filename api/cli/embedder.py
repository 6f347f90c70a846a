"""`recollect embedder prepare | status | switch | back | drop`: changes the embedder while the service runs."""

from pathlib import Path
from typing import Annotated

import typer

from recollect.api.cli.command_context import AsJson, DataDir, read_context

app = typer.Typer(no_args_is_help=True, help="Change the embedder while the service runs.")


@app.command()
def prepare(
    context: typer.Context,
    model: Annotated[
        str | None, typer.Argument(help="The new embedder, as EMBEDDING_MODEL; left out: this command's own setting.")
    ] = None,
    dimensions: Annotated[int | None, typer.Option(min=1, max=65_536, help="As EMBEDDING_DIMENSIONS.")] = None,
    path: Annotated[Path | None, typer.Option(help="As EMBEDDING_MODEL_PATH.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Fill the new embedder's collection behind the service; a killed one goes on where it was."""
    config = read_context(context, data_dir).config
    from recollect.api.cli import embedder_work

    spec = embedder_work.named(config, model, dimensions, path)
    embedder_work.prepare_collection(config, spec)


@app.command()
def status(context: typer.Context, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Show which embedder serves, and which other one there is."""
    _run(context, data_dir, "status", as_json=as_json)


@app.command()
def switch(context: typer.Context, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Let the prepared embedder serve."""
    _run(context, data_dir, "switch", as_json=as_json)


@app.command()
def back(context: typer.Context, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Let the embedder serve again that served before the switch."""
    _run(context, data_dir, "back", as_json=as_json)


@app.command()
def drop(context: typer.Context, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Delete the collection of the embedder that does not serve."""
    _run(context, data_dir, "drop", as_json=as_json)


def _run(context: typer.Context, data_dir: Path | None, verb: str, *, as_json: bool) -> None:
    config = read_context(context, data_dir).config
    from recollect.api.cli import embedder_work

    embedder_work.show_status(embedder_work.act(config, verb), as_json=as_json)
