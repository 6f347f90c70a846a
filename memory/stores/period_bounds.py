"""Converts a period to whole milliseconds, the unit in which every store keeps times."""

from datetime import timedelta

from recollect.memory.values.period import Period
from recollect.memory.values.times import to_ms

_ALMOST_A_MILLISECOND = timedelta(microseconds=999)


def bounds_ms(period: Period) -> tuple[int, int]:
    """Return the first millisecond of `period` and the first one after it; an instant lasts one millisecond."""
    begin, end = (to_ms(time + _ALMOST_A_MILLISECOND) for time in (period.begin, period.end))
    return begin, max(end, begin + 1)
