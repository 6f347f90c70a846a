"""The command line: `recollect serve | doctor | reindex | learn`."""

import ipaddress
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from api.log import configure_logging
from api.version import VERSION
from memory.errors import ConfigurationError, RecollectError
from memory.mem_config import MemoryConfig
from settings import Settings, load_settings

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Recollect: an agent service that remembers.")
errors = Console(stderr=True, soft_wrap=True)

DataDir = Annotated[Path | None, typer.Option(help="Folder of the embedded stores (DATA_DIR).")]


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """Recollect: an agent service that remembers."""
    if version:
        Console().print(VERSION)
        raise typer.Exit


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (PORT).")] = None,
    data_dir: DataDir = None,
) -> None:
    """Serve the agent over HTTP until stopped."""
    settings = load_settings(host=host, port=port, data_dir=data_dir)
    check_address(settings)
    configure_logging(settings.log_level)
    from api.app import create_app
    from api.server import Address, run

    run(
        lambda url: create_app(settings, url=url),
        Address(settings.host, settings.port),
        shutdown_seconds=settings.shutdown_seconds,
    )


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Compare documents and index, and say what to do; exit code 1 where something is wrong."""
    config = _quiet_config(data_dir)
    from api.commands.doctor import doctor as examine

    raise typer.Exit(examine(config, as_json=as_json))


@app.command()
def reindex(
    user: Annotated[str | None, typer.Option(help="One user's points alone, where they are.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Rebuild the index from the documents, while the service runs or without it."""
    config = _quiet_config(data_dir)
    from api.commands.reindex import reindex as rebuild

    rebuild(config, user_id=user, dry_run=dry_run)


@app.command()
def learn(
    failed: Annotated[bool, typer.Option("--failed", help="Try the updates again that have failed.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Learn again from turns whose update has failed."""
    if not failed:
        raise typer.BadParameter("say --failed: only failed updates are tried again.")
    config = _quiet_config(data_dir)
    from api.commands.learn import learn_failed

    raise typer.Exit(learn_failed(config))


@app.command(name="import")
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A file of JSON Lines, a folder of session_*.json or of Markdown entries, mongodb://…/database, or a "
            "Qdrant server's URL."
        ),
    ],
    user: Annotated[str | None, typer.Option(help="Whose it is where the source does not say.")] = None,
    learn: Annotated[bool, typer.Option("--learn", help="Learn from the turns too.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Import conversations, through the service or without it; exit code 1 where lines failed."""
    config = _quiet_config(data_dir)
    from api.commands.imports import import_source

    raise typer.Exit(import_source(config, source, user_id=user, learn=learn))


def _quiet_config(data_dir: Path | None) -> MemoryConfig:
    """The configuration of a command that ends by itself: of its log, only warnings and errors are shown."""
    settings = load_settings(data_dir=data_dir)
    configure_logging("WARNING")
    return settings.memory()


def check_address(settings: Settings) -> None:
    """Nobody has to prove who they are, so only this machine may call, unless the settings say otherwise.

    Raises:
        ConfigurationError: HOST is no loopback address, and ALLOW_INSECURE is not set.
    """
    if settings.allow_insecure or is_loopback(settings.host):
        return
    raise ConfigurationError(
        f"HOST {settings.host} is reachable from other machines, and callers need not prove who they are. Listen on "
        "127.0.0.1, or set ALLOW_INSECURE=true."
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def main() -> None:
    """Run the command; what stops it is one sentence, a wrong setting exit code 2, anything else 1."""
    try:
        app()
    except RecollectError as error:
        errors.print("[red]error:[/red]", escape(error.message), highlight=False)
        sys.exit(2 if isinstance(error, ConfigurationError) else 1)
