"""Lines that a user has typed at this DATA_DIR's terminals, cached while one of them is open."""

from datetime import timedelta
from typing import TYPE_CHECKING

from recollect.api.cli.command_context import CommandContext
from recollect.memory.opening.stores import terminal_history
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import utc_now

if TYPE_CHECKING:
    from recollect.memory.opening.stores import TerminalHistory


class TypedLines:
    """Keeps a user's lines from one conversation to the next.

    Lines are written only beside the service's own DATA_DIR (`is_kept`): elsewhere the service that erases the user
    could not reach them, and they end with the process.
    """

    def __init__(self, told: CommandContext, user_id: str, *, is_kept: bool) -> None:
        self._user_id = user_id
        self._days = told.config.episode_retention_days
        self._store: TerminalHistory | None = terminal_history(told.config) if is_kept else None

    def before(self) -> list[str]:
        """Return the lines of earlier conversations, oldest first; drop the ones past EPISODE_RETENTION_DAYS.

        Raises:
            OSError: they cannot be read.
        """
        if self._store is None:
            return []
        since = utc_now() - timedelta(days=self._days) if self._days else None
        self._store.trim(self._user_id, since=since)
        return [typed.line for typed in self._store.lines(Scope(self._user_id))]

    def add(self, line: str, *, thread_id: str) -> None:
        """Keep a line.

        Raises:
            OSError: it cannot be written; no further line is tried.
        """
        if self._store is None:
            return
        try:
            self._store.add(Scope(self._user_id, thread_id), line, at=utc_now())
        except OSError:
            self._store = None
            raise
