"""What a user has typed at this DATA_DIR's terminals, while one of them is open."""

from datetime import timedelta
from typing import TYPE_CHECKING

from api.commands.told import Told
from memory.opening_stores import terminal_history
from memory.scope import Scope
from memory.times import utc_now

if TYPE_CHECKING:
    from memory.opening_stores import TerminalHistory


class TypedLines:
    """Keeps a user's lines from one conversation to the next.

    Only beside the service's own DATA_DIR (`is_kept`): elsewhere the service that erases the user could not reach them,
    and they end with the process.
    """

    def __init__(self, told: Told, user_id: str, *, is_kept: bool) -> None:
        self._user_id = user_id
        self._days = told.config.episode_retention_days
        self._store: TerminalHistory | None = terminal_history(told.config) if is_kept else None

    def before(self) -> list[str]:
        """The lines of earlier conversations, oldest first; those past EPISODE_RETENTION_DAYS are dropped.

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
