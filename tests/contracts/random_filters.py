"""Random metadata and filters, from a seed. Both draw from the same values, so that many filters hold."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from recollect.memory.values.filtering.keys import read_filter_keys

KEYS = read_filter_keys("k:keyword,i:integer,f:float,b:boolean,d:datetime")
"""`u` is the key that is not declared."""
BEGIN = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
NAMES = (None, "a", "b", "2026-01-31")
SCALARS: tuple[Any, ...] = (
    *(True, False, 0, 1, 2, -1, 0.5, 2.5, 1.0, -0.0, 2**53 + 1, 2**53, float(2**53), 2**70, -(2**70), 1e308),
    *("a", "b", "", "A:b", "x" * 100, "x" * 101, "soon", "é", "a\x01", "; DROP", "$ne", "2026-01-31"),
    *("2026-01-31T00:00:00Z", "2026-01-30T23:00:00-01:00"),
)
_TIMES = ("2026-01-31T09:30:00.001Z", "2026-01-31T09:30:00.0005Z", "2026-01-31T09:30:00Z", "2026-02-01")
_ORDERS = ("gte", "gt", "lte", "lt")


class RandomFilters:
    """Draws metadata, times and filters."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def metadata(self) -> dict[str, Any]:
        return {key: self._value() for key in "kifbdu" if self._random.random() < 0.6}

    def time(self) -> datetime:
        return BEGIN + timedelta(milliseconds=self._random.choice((0, 1, 2)))

    def name(self) -> str | None:
        return self._random.choice(NAMES)

    def filter(self, depth: int = 2) -> dict[str, Any]:
        chance = self._random.random()
        if depth == 0 or chance < 0.6:
            return self._conditions()
        if chance < 0.75:
            return {"not": self.filter(depth - 1)}
        return {self._random.choice(("or", "and")): [self.filter(depth - 1) for _ in range(self._random.randrange(3))]}

    def _value(self) -> Any:
        chance = self._random.random()
        if chance < 0.75:
            return self._scalar()
        others: tuple[Any, ...] = (None, {"a": 1}, [[self._scalar()], [], self._scalar()], [*range(40)], [])
        return self._random.choice((*others, [self._scalar() for _ in range(self._random.randrange(4))]))

    def _conditions(self) -> dict[str, Any]:
        name = self._random.choice((*"kifbdu", "role", "name", "source", "kind", "created_at", "thread_id", "agent_id"))
        if name == "created_at":
            return {name: {self._random.choice((*_ORDERS, "ne")): self._random.choice(_TIMES)}}
        chance = self._random.random()
        if chance < 0.25:
            return {name: self._scalar()}
        if chance < 0.45:
            return {name: {"ne": self._scalar()}}
        if chance < 0.6:
            return {name: {"in": [self._scalar() for _ in range(self._random.randrange(4))]}}
        ordered = [one for one in SCALARS if not isinstance(one, bool)]
        return {name: {self._random.choice(_ORDERS): self._random.choice(ordered)}}

    def _scalar(self) -> Any:
        return self._random.choice(SCALARS)
