"""A period in the whole milliseconds that every store keeps times in."""

from datetime import timedelta

from memory.dates import Period
from memory.times import to_ms

_ALMOST_A_MILLISECOND = timedelta(microseconds=999)


def bounds_ms(period: Period) -> tuple[int, int]:
    """The first millisecond within it and the first one behind it; an instant has the one at which it is."""
    begin, end = (to_ms(time + _ALMOST_A_MILLISECOND) for time in (period.begin, period.end))
    return begin, max(end, begin + 1)
