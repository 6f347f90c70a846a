"""Writes the ids of points as texts, and keeps those that it has written."""

from uuid import UUID

_MOST = 10_000
"""About 2.5 MB."""


class IdTexts:
    """Gives the text of an id, for several threads.

    A search meets most ids two or three times, and to write one takes as long as all else that is done with a score.
    """

    def __init__(self) -> None:
        self._written: dict[int, str] = {}

    def of(self, point_id: UUID | int | str) -> str:
        """Return the text of a point's id."""
        if not isinstance(point_id, UUID):
            return str(point_id)
        written = self._written.get(point_id.int)
        if written is None:
            if len(self._written) >= _MOST:
                self._written.clear()
            written = self._written[point_id.int] = str(point_id)
        return written
