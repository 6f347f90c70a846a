"""Ends a command that an error has stopped, with one sentence and an exit code."""

import sys
from typing import NoReturn

from rich.console import Console

from recollect.api.cli.terminal.plain_text import safe
from recollect.memory.values.errors import ConfigurationError, RecollectError

errors = Console(stderr=True, soft_wrap=True)


def end_command(error: RecollectError) -> NoReturn:
    """Print the error's sentence and exit: with code 2 where a setting is wrong, else with 1."""
    errors.print("[red]error:[/red]", safe(error.message), highlight=False)
    sys.exit(2 if isinstance(error, ConfigurationError) else 1)
