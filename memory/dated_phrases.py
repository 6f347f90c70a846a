"""Dates within a text, in English and German: "on 3 June", "in May", "from 2022 to 2023". Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, timedelta

from memory import wall_time
from memory.dates import Dated, Period, date_starts, read_date
from memory.time_leads import Lead, read_lead
from memory.time_phrases import Phrase
from memory.wall_time import Now, Span

_MOST_CHARACTERS = 40
"""No date is longer."""
_FIRST_YEAR, _YEARS_AHEAD = 1900, 100
"""A number says a year from the first of these until so many years from now."""
_VERBS = re.compile(r"(?:\d+ (?:may|march)|(?:may|march) \d+)(?!\w)")
"""What lower case leaves in doubt: "answer 3 may be wrong", "I may 2 times"."""
_RANGE = re.compile(r"(?: ?[-\u2013] ?| (?:(?P<pair>and|und)|to|until|till|through|bis) )(?:the |zum )?", re.IGNORECASE)
_PAIRS = ("between ", "zwischen ")


def dated_phrases(text: str, now: Now) -> Iterator[tuple[Phrase, Lead]]:
    """The first date, and what leads to it. `text` has single spaces."""
    for begin in date_starts(text):
        read = _read(text, begin)
        if read is None:
            continue
        dated, end = read
        lead = read_lead(text, begin, dated=True)
        if not _means_date(dated, lead, text[begin:end], now):
            continue
        span, end = _range(text, end, dated, lead, now)
        if span is not None:
            yield Phrase(span, begin, end), lead
            return


def _read(text: str, begin: int) -> tuple[Dated, int] | None:
    piece = text[begin : begin + _MOST_CHARACTERS].rstrip()
    read = read_date(piece)
    return (read[0], begin + len(piece) - len(read[1])) if read else None


def _means_date(dated: Dated, lead: Lead, said: str, now: Now) -> bool:
    if dated.year is not None and not _FIRST_YEAR <= dated.year <= now.wall.year + _YEARS_AHEAD:
        return False
    if dated.instant is not None or (dated.month is not None and dated.year is not None):
        return True
    return lead.leads or (dated.day is not None and not _VERBS.match(said))


def _range(text: str, end: int, dated: Dated, lead: Lead, now: Now) -> tuple[Span | None, int]:
    """Of both dates, where a second one follows ("between 11 August and 15 August 2023"), or of the one."""
    follows = _RANGE.match(text, end)
    until = _read(text, follows.end()) if follows else None
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
    """The one before (-1) or after (1) the period, which holds now."""
    return dated.coming(period.end) if way == 1 else dated.begun(period.begin - timedelta(microseconds=1))
