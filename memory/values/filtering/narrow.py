"""Conditions on an item's terms, texts and time, which stores and indexes evaluate by themselves."""

from recollect.memory.values.filtering.terms import TextField
from recollect.memory.values.frozen import frozen

LEAST_MS, MOST_MS = -(2**53), 2**53
"""Times before and behind every other, in milliseconds."""


@frozen
class HasTerm:
    """Holds for an item that has one of these terms."""

    terms: tuple[str, ...]


@frozen
class TermBetween:
    """Holds for an item that has a term at `low` or above it, and below `high`."""

    low: str
    high: str


@frozen
class TextIn:
    """Holds for an item that has one of these texts in a field."""

    field: TextField
    texts: tuple[str, ...]


@frozen
class TextBetween:
    """Holds for an item whose field is at `low` or above it, and below `high` (None: without end)."""

    field: TextField
    low: str
    high: str | None


@frozen
class CreatedBetween:
    """Holds for an item created at `begin` or later, and before `end`, in epoch milliseconds."""

    begin: int
    end: int


@frozen
class Every:
    """Holds for an item for which all parts hold; without parts for every item."""

    parts: tuple["Narrow", ...] = ()


@frozen
class Either:
    """Holds for an item for which one of the parts holds; without parts for none."""

    parts: tuple["Narrow", ...] = ()


@frozen
class Without:
    """Holds for an item for which the part does not."""

    part: "Narrow"


@frozen
class Made:
    """Holds for an item whose terms were made with the present keys; what others say of terms is meaningless."""


Narrow = Made | HasTerm | TermBetween | TextIn | TextBetween | CreatedBetween | Every | Either | Without
"""A condition on an item's terms, texts and time."""
ALL, NONE, MADE = Every(), Either(), Made()


def every(*parts: Narrow) -> Narrow:
    """Join conditions by *and*, without those that hold for every item."""
    left = tuple(dict.fromkeys(part for part in parts if part != ALL))
    if NONE in left:
        return NONE
    return left[0] if len(left) == 1 else Every(left)


def any_of(*parts: Narrow) -> Narrow:
    """Join conditions by *or*, without those that hold for no item."""
    left = tuple(dict.fromkeys(part for part in parts if part != NONE))
    if ALL in left:
        return ALL
    return left[0] if len(left) == 1 else Either(left)


def without(part: Narrow) -> Narrow:
    """Return the opposite of a condition."""
    if part == ALL:
        return NONE
    if part == NONE:
        return ALL
    return part.part if isinstance(part, Without) else Without(part)
