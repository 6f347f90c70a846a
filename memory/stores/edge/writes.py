"""Tells whoever keeps what it has read of a collection whether points were written meanwhile."""

from collections.abc import Generator
from contextlib import contextmanager


class Writes:
    """Counts the beginnings and ends of writes: one thread writes, others read."""

    def __init__(self) -> None:
        self._count = 0  # odd while one is under way

    @contextmanager
    def writing(self) -> Generator[None]:
        """Tell that points are written within the block."""
        self._count += 1
        try:
            yield
        finally:
            self._count += 1

    @property
    def rest(self) -> int | None:
        """A number that stays as long as nothing is written; None during a write."""
        count = self._count
        return None if count % 2 else count
