"""A case: a query of a user, and the memories that it has to find."""

from datetime import datetime
from typing import Any

from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import iso

MOST_CASES = 5_000
MOST_EXPECTED = 100
"""The most memories that one case expects."""


@frozen
class Case:
    """One case. `expect` are ids of messages (their own, or their importer's) and of facts; `now` (UTC) is the query's.

    Hits fulfil `filter`. `number` is the case's place among all, from 1.
    """

    number: int
    user_id: str
    query: str
    expect: tuple[str, ...]
    now: datetime | None = None
    filter: Filter | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the case, which has no filter, as a line of a file has it."""
        shown: dict[str, Any] = {"user_id": self.user_id, "query": self.query, "expect": list(self.expect)}
        return shown if self.now is None else {**shown, "now": iso(self.now)}
