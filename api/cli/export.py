"""`recollect export`: writes all data of a user into a file or onto the standard output."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rich.console import Console

from recollect.api.cli.command_context import CommandContext, Form
from recollect.api.cli.owner import check_there_is_something, serving_owner
from recollect.api.cli.terminal.connection import connection
from recollect.api.routes.exports import encoded
from recollect.memory.background.bulk import Bulk
from recollect.memory.opening.stores import open_store
from recollect.memory.transfer.archive_writing import archive_bytes
from recollect.memory.transfer.exporting import export_lines
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope


def export_user(told: CommandContext, user_id: str, *, form: Form, output: Path | None, url: str | None) -> None:
    """Write the export; a file appears only once it is complete.

    Raises:
        ConfigurationError: the file cannot be written, or an archive would go to a terminal.
        Refused: the service refused it, or broke it off.
    """
    if output is None and form == "markdown" and sys.stdout.isatty():
        raise ConfigurationError("An archive is nothing for a terminal; name its file with -o FILE.")
    with _output(output) as file:
        if url is None and serving_owner(told.config) is None:
            check_there_is_something(told.config)
            asyncio.run(_export_alone(told.config, user_id, form, file))
        else:
            with connection(told, url) as service:
                _write(file, service.client.export(user_id, {"format": form}))
    if output is not None:
        Console(stderr=True, soft_wrap=True).print(f"Exported to {output}.", markup=False, highlight=False)


async def _export_alone(config: MemoryConfig, user_id: str, form: Form, file: IO[bytes]) -> None:
    """Export from the store alone: no model and no index is needed for it."""
    async with open_store(config) as store:
        batches, bulk = export_lines(store, Scope(user_id)), Bulk(config.bulk_workers)
        async for piece in encoded(batches, bulk) if form == "jsonl" else archive_bytes(batches, bulk):
            await asyncio.to_thread(file.write, piece)


def _write(file: IO[bytes], pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        file.write(piece)


@contextmanager
def _output(path: Path | None) -> Generator[IO[bytes]]:
    """Provide the file, which takes its place at the end: conversations are private, so it is its owner's alone."""
    if path is None or str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written ({error.strerror}).") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        Path(name).replace(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written ({error.strerror}).") from None
    finally:
        Path(name).unlink(missing_ok=True)
