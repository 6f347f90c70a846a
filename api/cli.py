"""The command line: `recollect serve`."""

import ipaddress
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from api.log import configure_logging
from api.version import VERSION
from memory.errors import ConfigurationError
from settings import Settings, load_settings

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Recollect: an agent service that remembers.")
errors = Console(stderr=True, soft_wrap=True)


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
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the embedded stores (DATA_DIR).")] = None,
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
    """Run the command; a wrong setting is one sentence and exit code 2."""
    try:
        app()
    except ConfigurationError as error:
        errors.print(f"[red]error:[/red] {error.message}", highlight=False)
        sys.exit(2)
