"""Computes when something began, from a clause relative to the day on which it was said ("I moved last month")."""

import re
from datetime import UTC, datetime

from recollect.memory.temporal.temporal import find_interval
from recollect.memory.values.period import Period

_BEGINS = re.compile(r"\b(?:moved|started|joined|became|began|switched|changed|since)\b", re.IGNORECASE)
_DISTANCE = re.compile(r"\bago\b", re.IGNORECASE)
_RELATIVE = re.compile(r"\b(?:last|this|past|previous|yesterday|ago)\b", re.IGNORECASE)


def began(clause: str, said_at: datetime) -> str | None:
    """Return the day (YYYY-MM-DD) on which it began, counted from `said_at`; None if the clause names no such time.

    The planning of facts reads absolute dates ("since 2019") from the quote itself.
    """
    if not _BEGINS.search(clause):
        return None
    found = find_interval(clause, now=said_at, timezone=UTC)
    if found is None or not _RELATIVE.search(found.phrase) or found.period.begin > said_at:
        return None
    return f"{_first_day(found.period, is_around=_DISTANCE.search(found.phrase) is not None):%Y-%m-%d}"


def _first_day(period: Period, *, is_around: bool) -> datetime:
    """Return the day that is meant: the first of "last month", but the middle of "about two years ago"."""
    return period.begin + (period.end - period.begin) / 2 if is_around else period.begin
