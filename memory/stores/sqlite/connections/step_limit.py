"""Ends statements that run for too long on the event loop."""

import sqlite3

STEPS = 5_000
"""Statements that take twice as many steps of SQLite's machine, all together, are ended, and with fewer none ever is.

So many take 1 to 2 ms. To read a message takes about 30, and to store one about 200.
"""


class StepLimit:
    """Counts a connection's steps between `start` and `stop`, and interrupts the statement that takes too many."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._counted = 0

    def start(self) -> None:
        """Count from here on; SQLite counts on from one statement to the next."""
        self._counted = 0
        self._connection.set_progress_handler(self._count, STEPS)

    def stop(self) -> None:
        """Let statements run as long as they want."""
        self._connection.set_progress_handler(None, 0)

    @property
    def is_passed(self) -> bool:
        """Return whether a statement was interrupted since the start."""
        return self._counted > 1

    def _count(self) -> bool:
        """Tell SQLite, every `STEPS` steps, whether to end."""
        self._counted += 1
        return self.is_passed
