"""A connection for as long as a conversation lasts, whatever becomes of the service meanwhile."""

from contextlib import ExitStack

from api.commands.connection import Connection, connection
from api.commands.tables import plain_console
from api.commands.told import Told


class Reach:
    """Finds a service, and finds one again when that has gone: the terminal that brought it may have been closed.

    What a start or an end waits for is said, because a service of its own takes its time.
    """

    def __init__(self, told: Told, url: str | None) -> None:
        self._told = told
        self._url = url
        self._stack = ExitStack()
        self._console = plain_console(stderr=True)

    def connect(self) -> Connection:
        """The service at the URL, or DATA_DIR's owner as it is now, or one of this process's own.

        Raises:
            ConfigurationError: the service cannot be started, or the URL is none.
        """
        self._stack.close()
        with self._console.status("Starting …"):
            return self._stack.enter_context(connection(self._told, self._url, may_be_new=True))

    def close(self) -> None:
        """End the connection, and a service of its own, which finishes what is under way."""
        with self._console.status("Finishing what is under way …"):
            self._stack.close()
