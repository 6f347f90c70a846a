"""Dates within a text, in English and German: "on 3 June", "in May", "from 2022 to 2023". Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, timedelta

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.temporal import wall_time
from recollect.memory.temporal.dates import Dated, date_starts, read_date
from recollect.memory.temporal.time_leads import Lead, read_lead
from recollect.memory.temporal.time_phrases import Phrase
from recollect.memory.temporal.wall_time import Now, Span
from recollect.memory.values.period import Period

_MOST_CHARACTERS = 50
"""The longest date; no more is read."""
_FIRST_YEAR, _YEARS_AHEAD = 1900, 100
"""A number is a year from _FIRST_YEAR until _YEARS_AHEAD years from now."""
_VERBS = late_pattern(r"(?:\d+ (?:may|march)|(?:may|march) \d+)(?!\w)")
"""Lower-case words that may be verbs and not months: "answer 3 may be wrong", "I may 2 times"."""
_LASTS = late_pattern(r"(?:may|march) (?:last|next|this)(?!\w)")
"""Likewise with a year in words: "it may last years"."""
_RANGE = late_pattern(
    r"(?: ?[-\u2013] ?| (?:(?P<pair>and|und)|to|until|till|through|bis) )(?:the |zum )?", re.IGNORECASE
)
_PAIRS = ("between ", "zwischen ")


def dated_phrases(text: str, now: Now) -> Iterator[tuple[Phrase, Lead]]:
    """Yield the first date of the text with its lead. `text` has single spaces."""
    for begin in date_starts(text):
        read = _read(text, begin, now)
        if read is None:
            continue
        dated, end = read
        if not _is_near(dated, now):
            continue
        lead = read_lead(text, begin, dated=True)
        if not _means_date(dated, lead, text[begin:end]):
            continue
        span, end = _range(text, end, dated, lead, now)
        if span is not None:
            yield Phrase(span, begin, end), lead
            return


def _read(text: str, begin: int, now: Now) -> tuple[Dated, int] | None:
    piece = text[begin : begin + _MOST_CHARACTERS].rstrip()
    read = read_date(piece, at=now.wall)
    return (read[0], begin + len(piece) - len(read[1])) if read else None


def _is_near(dated: Dated, now: Now) -> bool:
    """Tell whether the date has no year, or one that a person may mean; most numbers of four digits are no years."""
    return dated.year is None or _FIRST_YEAR <= dated.year <= now.wall.year + _YEARS_AHEAD


def _means_date(dated: Dated, lead: Lead, said: str) -> bool:
    if dated.instant is not None or (dated.month is not None and dated.year is not None):
        return lead.leads or not _LASTS.match(said)
    return lead.leads or (dated.day is not None and not _VERBS.match(said))


def _range(text: str, end: int, dated: Dated, lead: Lead, now: Now) -> tuple[Span | None, int]:
    """Return the span of both dates if a second one follows ("between 11 August and 15 August 2023"), else of one.

    The second value is the place behind it in the text.
    """
    follows = _RANGE.match(text, end)
    until = _read(text, follows.end(), now) if follows else None
    if follows and until and (not follows["pair"] or lead.words.get("plain", "").endswith(_PAIRS)):
        last, last_end = until
        first = replace(dated, year=last.year) if dated.year is None and dated.month is not None else dated
        spans = _span(first, lead.way, now), _span(last, lead.way, now)
        if spans[0] and spans[1] and spans[0][0] < spans[1][0]:
            return (spans[0][0], spans[1][1]), last_end
    return _span(dated, lead.way, now), end


def _span(dated: Dated, way: int | None, now: Now) -> Span | None:
    if dated.instant is not None:
        return wall_time.day(Now.at(dated.instant, now.zone).wall)
    clock = now.wall.replace(tzinfo=UTC)
    period = dated.coming(clock) if way == 1 else dated.begun(clock)
    if period is not None and dated.year is None:
        if way == 0:
            period = replace(dated, year=now.wall.year).begun(clock)
        elif way is not None and period.begin <= clock < period.end:
            period = _beside(dated, way, period)
    return (period.begin.replace(tzinfo=None), period.end.replace(tzinfo=None)) if period else None


def _beside(dated: Dated, way: int, period: Period) -> Period | None:
    """Return the period of `dated` before (way -1) or after (1) `period`, which contains the present."""
    return dated.coming(period.end) if way == 1 else dated.begun(period.begin - timedelta(microseconds=1))
