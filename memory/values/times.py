"""Times: UTC everywhere, whole milliseconds in stores, ISO 8601 in answers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

Clock = Callable[[], datetime]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def utc_now() -> datetime:
    """Return the present in UTC and whole milliseconds, the resolution of every store."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def to_ms(time: datetime) -> int:
    """Return the milliseconds from the epoch to `time`."""
    return (time - _EPOCH) // _MILLISECOND


@lru_cache(maxsize=4_096)
def from_ms(milliseconds: int) -> datetime:
    """Return the UTC time that lies `milliseconds` after the epoch.

    A turn reads the same rows several times, and 200 times in them: the last ones are kept.
    """
    return _EPOCH + timedelta(milliseconds=milliseconds)


def iso(time: datetime) -> str:
    """Return `time` as ISO 8601 in UTC with milliseconds and a Z: 2026-01-31T09:30:00.000Z."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
