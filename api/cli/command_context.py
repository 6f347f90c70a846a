"""The options that commands share, and the configuration, which `api/cli/main.py` reads for them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig

if TYPE_CHECKING:
    from fastapi import FastAPI

TALK, KEEP, CARRY = "Serve and talk", "Look after", "Bring and take"
"""The panels of the help that list the commands."""

DataDir = Annotated[Path | None, typer.Option(help="Folder of the embedded stores (DATA_DIR).")]
User = Annotated[str, typer.Option("--user", help="Whose memory it is.")]
Url = Annotated[
    str | None, typer.Option(help="A service elsewhere, such as https://host; its key is RECOLLECT_API_KEY.")
]
Form = Literal["jsonl", "markdown"]
"""The form of an export."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@frozen
class CommandContext:
    """The configuration of a command that ends by itself, and how to run a service where it needs its own.

    `api_key` is for services elsewhere (RECOLLECT_API_KEY). `make_app` makes the application for the URL that it is
    served at, for this process alone.
    """

    config: MemoryConfig
    api_key: str | None
    make_app: "Callable[[str], FastAPI]"


def read_context(context: typer.Context, data_dir: Path | None) -> CommandContext:
    """Read the command's context from the environment and `--data-dir`.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    read: Callable[[Path | None], CommandContext] = context.obj
    return read(data_dir)
