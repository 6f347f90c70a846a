"""Spans of a wall clock: days, weeks, months, years and parts of them, without a time zone. Pure.

A span is two naive datetimes, the second one exclusive. A week begins on Monday.
"""

from datetime import UTC, date, datetime, time, timedelta, tzinfo

from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period

Span = tuple[datetime, datetime]

FIRST = datetime.combine(date(1970, 1, 1), time())
"""The begin of spans that are open to the past ("before May")."""
HOURS = {"morning": (4, 12), "noon": (11, 14), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
"""Parts of a day, in hours from its midnight; the night reaches into the next day."""
WEEKEND = (5, 6)
"""The days of the weekend, as `weekday()` counts them."""
_DAY = timedelta(days=1)
_AROUND = {"week": (3, 4), "month": (15, 15), "year": (183, 183)}
"""Days before the day "… weeks ago", and days from it on, that `ago` includes."""


@frozen
class Now:
    """The present: the instant in UTC, the user's time zone, and the wall clock there."""

    instant: datetime
    zone: tzinfo
    wall: datetime

    @classmethod
    def at(cls, instant: datetime, zone: tzinfo) -> "Now":
        """Return the present at `instant`, which is aware, in `zone`.

        Raises:
            OverflowError: it lies outside the calendar there.
        """
        return cls(instant.astimezone(UTC), zone, _wall(instant, zone))

    def back(self, passed: timedelta) -> datetime:
        """Return the wall clock `passed` before now; in an hour that occurs twice its `fold` tells which one it is."""
        return _wall(self.instant - passed, self.zone)


def in_utc(span: Span, zone: tzinfo) -> Period | None:
    """Return the span in UTC; None where it is empty (a day that its zone left out).

    A midnight that a clock skips becomes the moment of the skip.

    Raises:
        OverflowError: it lies outside the calendar.
    """
    begin, end = (wall.replace(tzinfo=zone).astimezone(UTC) for wall in span)
    return Period(begin, end) if begin < end else None


def day(at: date, days: int = 0) -> Span:
    """Return the day `days` after the one of `at`."""
    begin = datetime.combine(at, time()) + days * _DAY
    return begin, begin + _DAY


def part(at: date, name: str) -> Span:
    """Return the part of the day of `at` with this name, a key of HOURS."""
    begin, _ = day(at)
    first, last = HOURS[name]
    return begin + timedelta(hours=first), begin + timedelta(hours=last)


def unit(at: date, name: str, count: int = 0) -> Span:
    """Return the calendar day, week, weekend, month or year `count` units after the one that contains `at`."""
    if name == "day":
        return day(at, count)
    if name in {"week", "weekend"}:
        begin, _ = day(at, 7 * count - at.weekday())
        return (begin, begin + 7 * _DAY) if name == "week" else (begin + 5 * _DAY, begin + 7 * _DAY)
    months = 12 if name == "year" else 1
    first = _month(at) // months * months + count * months
    return _first_of(first), _first_of(first + months)


def months(year: int, first: int, count: int = 1) -> Span:
    """Return `count` months, beginning with month `first` (1-12) of `year`."""
    return _first_of(year * 12 + first - 1), _first_of(year * 12 + first - 1 + count)


def ago(now: datetime, name: str, least: int, most: int) -> Span:
    """Return the span from `most` to `least` units back (days, weeks, months or years), widened by half a unit."""
    before, after = _AROUND.get(name, (0, 1))
    return day(_back(now, name, most), -before)[0], day(_back(now, name, least), after)[0]


def since(now: datetime, name: str, count: int) -> Span:
    """Return the last `count` days, weeks, months or years, today included."""
    return day(_back(now, name, count))[0], day(now)[1]


def weekend_beside(span: Span, side: str) -> Span:
    """Return the whole weekend before or after the span, as `side` says."""
    before, after = unit(span[0], "weekend", -1), unit(span[1], "weekend")
    if side == "before":
        held = unit(span[0], "weekend")
        return held if held[1] <= span[0] else before
    return after if after[0] >= span[1] else unit(span[1], "weekend", 1)


def coming(now: datetime, name: str, count: int) -> Span:
    """Return the next `count` days, weeks, months or years, from tomorrow on."""
    return day(now)[1], day(_back(now, name, -count))[1]


def third(span: Span, which: int) -> Span:
    """Return the first (0), middle (1) or last (2) third of the span, in whole days."""
    begin, end = span
    days = (end - begin).days
    return begin + days * which // 3 * _DAY, begin + days * (which + 1) // 3 * _DAY


def _wall(instant: datetime, zone: tzinfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)


def _back(now: datetime, name: str, count: int) -> date:
    if name in {"day", "week", "weekend"}:
        return (now - count * (_DAY if name == "day" else 7 * _DAY)).date()
    first, following = unit(_first_of(_month(now) - count * (12 if name == "year" else 1)), "month")
    return min(first + (now.day - 1) * _DAY, following - _DAY).date()


def _month(at: date) -> int:
    return at.year * 12 + at.month - 1


def _first_of(month: int) -> datetime:
    if not 12 <= month < 12 * 10_000:
        raise OverflowError("month out of range")
    return datetime.combine(date(month // 12, month % 12 + 1, 1), time())
