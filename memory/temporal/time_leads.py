"""Leads: words in front of a time that change it ("since", "the week before", "early"). English and German; pure."""

import re
from datetime import timedelta

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set
from recollect.memory.temporal import wall_time
from recollect.memory.temporal.time_phrases import COUNT, UNITS, WEEKDAYS, Phrase, count
from recollect.memory.temporal.wall_time import Now, Span
from recollect.memory.values.frozen import frozen

_MOST_CHARACTERS = 60
"""The longest lead; the pattern looks at no more."""
_SHORTEST = timedelta(days=3)
"""The shortest span that "early", "mid" and "late" divide."""
_THIRDS = {
    word: third
    for third, said in enumerate(("early beginning start anfang", "mid middle mitte", "late end ende"))
    for word in said.split()
}
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
_PLAIN = (
    "earlier|on|in|at|around|about|by|for|from|during|within|over|of|between|am|im|um|gegen|von|vom|zwischen|en|le|el"
)
_LEAD = rf"""(?<!\w)
    (?P<plain>(?:(?:{_PLAIN})[ ])?)
    (?P<rule>
        (?:the[ ])?(?:(?P<third>early|mid|late|anfang|mitte|ende)|(?P<part>beginning|start|middle|end)[ ]of)[ -]
      | (?:the[ ])?(?P<nth>{"|".join(_ORDINALS)})[ ](?P<unit>week|weekend)[ ](?:of|in)[ ]
      | (?:the[ ]|last[ ])?(?P<around>day|week|weekend|month)[ ](?P<side>before|after|of)[ ]
      | (?:the[ ]|last[ ])?(?P<weekday>{"|".join(WEEKDAYS)})[ ](?P<beside>before|after)[ ]
      | {COUNT}[ ](?P<back>days?|weeks?|months?)[ ]before[ ]
      | (?P<bound>since|seit|ab|after|nach|before|vor|until|till|bis|up[ ]to)[ ]
      | (?P<last>last|letzte[nmrs]?|vorige[nmrs]?|vergangene[nmrs]?)[ ]
      | (?P<next>next|coming|nächste[nmrs]?|kommende[nmrs]?)[ ]
      | (?P<this>this|diese[nmrs]?)[ ]
    )?
    (?:(?:the|den|dem|der|des|year|month|jahre?|monat)[ ])*
"""
_LEADS = {
    dated: late_pattern(rf"{_LEAD}{end}$", re.IGNORECASE | re.VERBOSE)
    for dated, end in ((False, ""), (True, rf"(?:(?:{'|'.join(WEEKDAYS)}),?[ ](?:(?:the|den|dem)[ ])?)?"))
}
"""Patterns by whether a date follows: only then a weekday may stand before it ("on Friday, 3 June")."""
_TOPICS = word_set("about by for")
"""Words after which a month or a year is a topic ("about June"), not a time."""


@frozen
class Lead:
    """The words in front of a time: where they begin, whether they say that a time follows, and each by its role."""

    begin: int
    leads: bool
    words: dict[str, str]

    @property
    def way(self) -> int | None:
        """-1 for "last May", 1 for "next May", 0 for "this May"; None without such a word."""
        return next((way for name, way in (("last", -1), ("next", 1), ("this", 0)) if name in self.words), None)


def read_lead(text: str, begin: int, *, dated: bool = False) -> Lead:
    """Return the lead of the time that begins at `begin`: of a date if `dated`, else of another phrase.

    `text` has single spaces.
    """
    offset = max(0, begin - _MOST_CHARACTERS)
    found = _LEADS[dated].search(text[offset:begin])
    if found is None:
        return Lead(begin, False, {})
    said = {name: value.lower() for name, value in found.groupdict().items() if value}
    return Lead(offset + found.start(), "rule" in said or said.get("plain", "").strip() not in _TOPICS | {""}, said)


def led(phrase: Phrase, lead: Lead, now: Now) -> Phrase | None:
    """Return the phrase changed by its lead; None where nothing of it is left ("after" a time to come).

    Raises:
        OverflowError: it lies outside the calendar.
    """
    span = _led(phrase.span, lead.words, now)
    return Phrase(span, lead.begin, phrase.end) if span is phrase.span or span[0] < span[1] else None


def _led(span: Span, said: dict[str, str], now: Now) -> Span:
    if "bound" in said:
        return _bound(span, said["bound"], now)
    if "back" in said:
        least, most = count(said["count"])
        return wall_time.ago(span[0], UNITS[said["back"]], least, most)
    if "around" in said:
        return _beside(span, said["around"], said["side"])
    if "weekday" in said:
        return _weekday_beside(span, WEEKDAYS[said["weekday"]], said["beside"])
    if "nth" in said:
        return _nth(span, _ORDINALS[said["nth"]], said["unit"])
    third = said.get("third") or said.get("part")
    return wall_time.third(span, _THIRDS[third]) if third and span[1] - span[0] >= _SHORTEST else span


def _bound(span: Span, word: str, now: Now) -> Span:
    tomorrow = wall_time.day(now.wall)[1]
    if word in {"since", "seit", "ab"}:
        return span[0], max(span[1], tomorrow)
    if word in {"after", "nach"}:
        return span[1], tomorrow
    return wall_time.FIRST, span[0] if word in {"before", "vor"} else span[1]


def _beside(span: Span, unit: str, side: str) -> Span:
    if side == "of":
        return wall_time.unit(span[0], unit)
    if unit == "weekend":
        return wall_time.weekend_beside(span, side)
    days = timedelta(days={"day": 1, "week": 7, "month": 30}[unit])
    return (span[0] - days, span[0]) if side == "before" else (span[1], span[1] + days)


def _weekday_beside(span: Span, weekday: int, side: str) -> Span:
    if side == "before":
        return wall_time.day(span[0], -((span[0].weekday() - weekday) % 7 or 7))
    return wall_time.day(span[1], (weekday - span[1].weekday()) % 7)


def _nth(span: Span, which: int, unit: str) -> Span:
    step = timedelta(days=7)
    begin = span[0] + which * step if which >= 0 else span[1] - step
    if unit == "week":
        return begin, begin + step
    saturday = begin + timedelta(days=(wall_time.WEEKEND[0] - begin.weekday()) % 7)
    return saturday, saturday + timedelta(days=2)
