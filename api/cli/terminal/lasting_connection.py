"""A connection that lasts as long as a conversation, even where the service is replaced meanwhile."""

from contextlib import ExitStack

from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.terminal.connection import TerminalConnection, connection
from recollect.api.cli.terminal.tables import plain_console


class LastingConnection:
    """Finds a service, and another one when it has gone, because the terminal that ran it may have been closed.

    It prints what a start or an end waits for, because a service of its own takes its time.
    """

    def __init__(self, told: CommandContext, url: str | None) -> None:
        self._told = told
        self._url = url
        self._stack = ExitStack()
        self._console = plain_console(stderr=True)

    def connect(self) -> TerminalConnection:
        """Return the service at the URL, the current owner of DATA_DIR, or one that this process starts.

        Raises:
            ConfigurationError: the service cannot be started, or the URL is none.
        """
        self._stack.close()
        with self._console.status("Starting …"):
            return self._stack.enter_context(connection(self._told, self._url, may_be_new=True))

    def close(self) -> None:
        """End the connection, and a service of its own once its running work is finished."""
        with self._console.status("Finishing what is under way …"):
            self._stack.close()
