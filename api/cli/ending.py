"""Ends a command that an error has stopped, with one sentence and an exit code."""

import sys
from typing import NoReturn

from recollect.memory.values.errors import ConfigurationError, RecollectError


def end_command(error: RecollectError) -> NoReturn:
    """Print the error's sentence and exit: with code 2 where a setting is wrong, else with 1."""
    from rich.console import Console  # which a service that starts need not wait for

    from recollect.api.cli.terminal.plain_text import safe

    errors = Console(stderr=True, soft_wrap=True)
    errors.print("[red]error:[/red]", safe(error.message), highlight=False)
    sys.exit(2 if isinstance(error, ConfigurationError) else 1)
