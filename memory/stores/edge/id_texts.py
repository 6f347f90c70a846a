"""Writes the ids of points as texts, and keeps those that it has written."""

from collections.abc import Iterable
from uuid import UUID

_MOST = 10_000
"""About 2.5 MB."""


class IdTexts:
    """Gives the text of an id, for several threads.

    A search meets most ids two or three times, and to write one takes as long as all else that is done with a score.
    """

    def __init__(self) -> None:
        self._written: dict[int, str] = {}

    def of(self, point_ids: Iterable[UUID | int | str]) -> list[str]:
        """Return the texts of points' ids, in their order."""
        written, texts = self._written, list[str]()
        for point_id in point_ids:
            text = written.get(point_id.int) if isinstance(point_id, UUID) else str(point_id)
            texts.append(self._write(point_id) if text is None else text)
        return texts

    def _write(self, point_id: UUID | int | str) -> str:
        text = str(point_id)
        if isinstance(point_id, UUID):
            if len(self._written) >= _MOST:
                self._written.clear()
            self._written[point_id.int] = text
        return text
