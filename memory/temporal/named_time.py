"""The time that a text names, in a user's own time zone."""

import asyncio
from datetime import UTC, datetime

from recollect.memory.temporal.temporal import MOST_CHARACTERS, Found, find_interval, read_timezone
from recollect.memory.temporal.time_languages import languages_of
from recollect.memory.values.errors import InvalidRequest, Problem


async def named_time(text: str, *, now: datetime, zone: str) -> Found | None:
    """Find the time that `text` names, seen from `now` in the time zone named `zone`.

    Time zones, and languages other than English and German, are read from files: that runs in a thread.

    Raises:
        InvalidRequest: the time zone does not exist.
    """
    if zone == "UTC" and not languages_of(text[:MOST_CHARACTERS]):
        return find_interval(text, now=now, timezone=UTC)
    return await asyncio.to_thread(_in_zone, text, zone, now)


def _in_zone(text: str, name: str, now: datetime) -> Found | None:
    try:
        zone = read_timezone(name)
    except ValueError as error:
        problem = Problem("timezone", "is no IANA time zone such as Europe/Berlin")
        raise InvalidRequest("The request is not valid: see timezone.", problems=[problem]) from error
    return find_interval(text, now=now, timezone=zone)
