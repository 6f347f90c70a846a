"""Times that a query names: "yesterday", "last week", "on 3 June 2023", "vor zwei Wochen", "la semaine dernière". Pure.

They are resolved against the present and the user's time zone. English and German are read by this package's patterns;
other languages by dateparser, which is imported at the first text that needs it (0.2 s, and 0.1 s for each language).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.temporal import wall_time
from recollect.memory.temporal.dated_phrases import dated_phrases
from recollect.memory.temporal.dates import says_time
from recollect.memory.temporal.time_languages import languages_of
from recollect.memory.temporal.time_leads import Lead, led, read_lead
from recollect.memory.temporal.time_phrases import Phrase, phrases
from recollect.memory.temporal.wall_time import Now
from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period

MOST_CHARACTERS = 500
"""How much of the beginning of a text is searched: the bound on the time that a query takes."""
_ZONE = late_pattern(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_LONGEST_ZONE = 64
_NOT_ZONES = {"posix", "right", "posixrules", "localtime", "Factory"}
"""Names in the zone database that are no zones: copies with leap seconds, and this machine's own setting."""
_PLAIN = str.maketrans("\u017f\u0131\u0130\u212a", "siIK")
"""Letters that a pattern confuses with ASCII ones when it ignores case."""
_DIGIT = late_pattern(r"\d")


@frozen
class Found:
    """The time that a text names (UTC, the end exclusive), the words that name it, and the text without them."""

    period: Period
    phrase: str
    rest: str


def find_interval(text: str, *, now: datetime, timezone: tzinfo) -> Found | None:
    """Return the first time that the text names, or None where it names none, or one outside the calendar.

    `now` has a time zone. Days begin at midnight in `timezone`, weeks on Monday. A date without a year is the last such
    date that has begun.
    """
    head = text[:MOST_CHARACTERS]
    timed = says_time(head) or _DIGIT.search(head) is not None
    languages = languages_of(head)
    if not timed and not languages:
        return None
    head = " ".join(head.split())
    try:
        present = Now.at(now, timezone)
        phrase = _own(head, present) or (_foreign(head, languages, present) if languages else None)
        period = wall_time.in_utc(phrase.span, timezone) if phrase else None
    except OverflowError:
        return None
    if phrase is None or period is None:
        return None
    left = f"{head[: phrase.begin]} {head[phrase.end :]}{_tail(text)}"
    return Found(period, head[phrase.begin : phrase.end], " ".join(left.split()))


def read_timezone(name: str) -> tzinfo:
    """Return the time zone of an IANA name ("Europe/Berlin"), or "UTC".

    Raises:
        ValueError: there is none of that name.
    """
    if name == "UTC":
        return UTC
    if len(name) <= _LONGEST_ZONE and _ZONE.fullmatch(name) and name.split("/")[0] not in _NOT_ZONES:
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            pass
    raise ValueError('It must be the IANA name of a time zone, such as "Europe/Berlin", or "UTC".')


def _tail(text: str) -> str:
    border = text[MOST_CHARACTERS - 1 : MOST_CHARACTERS + 1]
    return f"{'' if border == border.strip() else ' '}{text[MOST_CHARACTERS:]}"


def _own(text: str, now: Now) -> Phrase | None:
    plain = text if text.isascii() else text.translate(_PLAIN)
    return _first(_relative(plain, now), _dated(plain, now))


def _first(relative: Iterable[Phrase], dated: Iterable[Phrase]) -> Phrase | None:
    """Return the first phrase; a date that contains or directly follows it wins: "last Friday on 23 January"."""
    near, exact = list(relative), next(iter(dated), None)
    first = min(near, key=lambda phrase: (phrase.begin, -phrase.end), default=None)
    if first is None or exact is None:
        return first or exact
    if exact.begin < first.begin and first.end <= exact.end:
        return exact  # It contains the relative phrase: "August last year".
    if exact.begin > first.end + 1 or exact.end <= first.end:
        return first
    return replace(exact, begin=min(first.begin, exact.begin))


def _relative(text: str, now: Now) -> Iterator[Phrase]:
    for phrase in phrases(text, now):
        yield from _led(phrase, read_lead(text, phrase.begin), now)


def _dated(text: str, now: Now) -> Iterator[Phrase]:
    for phrase, lead in dated_phrases(text, now):
        yield from _led(phrase, lead, now)


def _led(phrase: Phrase, lead: Lead, now: Now) -> Iterator[Phrase]:
    try:
        found = led(phrase, lead, now)
    except OverflowError:
        return
    if found is not None:
        yield found


def _foreign(text: str, languages: tuple[str, ...], now: Now) -> Phrase | None:
    from recollect.memory.temporal.foreign_times import first_phrase  # dateparser is heavy, and few texts need it

    return first_phrase(text, languages, now)
