"""Tells whoever keeps what it has read of a collection whether points were written meanwhile."""

from collections.abc import Generator
from contextlib import contextmanager

_MOST_USERS = 100_000
"""About 10 MB."""


class Writes:
    """Counts the beginnings and ends of writes: one at a time is under way, others read."""

    def __init__(self) -> None:
        self._count = 0  # odd while one is under way
        self._of_all = 0
        self._of_user: dict[str, int] = {}

    @contextmanager
    def writing(self, user_id: str | None) -> Generator[None]:
        """Tell that points of the user are written within the block; None: of anybody."""
        self._count += 1
        try:
            yield
        finally:
            self._count += 1
            if user_id is None or len(self._of_user) >= _MOST_USERS:
                self._of_user.clear()
                self._of_all = self._count
            else:
                self._of_user[user_id] = self._count

    def rest(self, user_id: str | None = None) -> int | None:
        """Return a number that stays until anything of the user, or of all, is written; None during a write."""
        count = self._count
        if count % 2:
            return None
        return count if user_id is None else self._of_user.get(user_id, self._of_all)
