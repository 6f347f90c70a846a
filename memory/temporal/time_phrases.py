"""Phrases that name a time by its distance from now, in English and German: "last week", "vor zwei Tagen". Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set
from recollect.memory.temporal import wall_time
from recollect.memory.temporal.wall_time import Now, Span
from recollect.memory.values.frozen import frozen

UNITS = {
    word: unit
    for unit, names in {
        "minute": "minute minutes minuten",
        "hour": "hour hours stunde stunden",
        "day": "day days tag tage tagen tages",
        "week": "week weeks woche wochen",
        "weekend": "weekend weekends wochenende wochenenden",
        "month": "month months monat monate monaten monats",
        "year": "year years jahr jahre jahren jahres",
    }.items()
    for word in names.split()
}
WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            *("monday montag", "tuesday dienstag", "wednesday mittwoch", "thursday donnerstag", "friday freitag"),
            *("saturday samstag sonnabend", "sunday sonntag"),
        )
    )
    for name in names.split()
}
_NUMBERS = (
    *("a an one ein eine einem einen einer", "two zwei", "three drei", "four vier", "five fünf", "six sechs"),
    *("seven sieben", "eight acht", "nine neun", "ten zehn", "eleven elf", "twelve zwölf"),
)
_COUNTS = {word: (number, number) for number, said in enumerate(_NUMBERS, start=1) for word in said.split()} | {
    **dict.fromkeys(("a couple", "couple"), (2, 3)),
    **dict.fromkeys(("a few", "few", "ein paar", "paar", "einige", "einigen"), (2, 5)),
    **dict.fromkeys(("several", "mehrere", "mehreren"), (3, 7)),
}
_CLOCK = {
    "minute": (timedelta(minutes=1), timedelta(minutes=5)),
    "hour": (timedelta(hours=1), timedelta(minutes=30)),
}
"""Units shorter than a day, which pass on a running clock: the length of each, and by how much it is widened."""
_PLURALS = word_set(
    "minutes minuten hours stunden days tage tagen weeks wochen months monate monaten years jahre jahren"
)
_NOON = 12
_MANY = 5
"""The count that a plural without a number stands for: "in the last weeks"."""
_PARTS = {name: name for name in wall_time.HOURS} | {
    **dict.fromkeys(("morgen", "früh", "vormittag"), "morning"),
    **{"mittag": "noon", "nachmittag": "afternoon", "abend": "evening", "nacht": "night"},
}
_DAYS = {
    **dict.fromkeys(("the day before yesterday", "day before yesterday", "vorgestern"), -2),
    **dict.fromkeys(("yesterday", "gestern"), -1),
    **dict.fromkeys(("earlier today", "today", "tonight", "heute"), 0),
    **dict.fromkeys(("tomorrow", "morgen"), 1),
    **dict.fromkeys(("the day after tomorrow", "day after tomorrow", "übermorgen"), 2),
}
_SEASONS = {
    **dict.fromkeys(("spring", "frühling", "frühjahr"), 3),
    **dict.fromkeys(("summer", "sommer"), 6),
    **dict.fromkeys(("autumn", "fall", "herbst"), 9),
    "winter": 12,
}
"""The month in which a season begins, north of the equator."""


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True)).replace(" ", r"\ ")


_LAST = "last|past|previous|this past|letzte[nmrs]?|vorige[nmrs]?|vergangene[nmrs]?"
_NEXT = "next|coming|this coming|upcoming|nächste[nmrs]?|kommende[nmrs]?"
_THIS = "this|current|diese[nmrs]?"
_WHICH = rf"(?:(?P<last>{_LAST})|(?P<next>{_NEXT})|(?P<this>{_THIS}))"
COUNT = rf"(?P<count>\d{{1,3}}|{_any(_COUNTS)})(?:\ of)?"
_UNIT = rf"(?P<unit>{_any(UNITS)})"
_PART = rf"(?P<part>{_any(_PARTS)})"
_NOT_TOMORROW = "".join(
    f"(?<!{word} morgen)" for word in ("guten", "schönen", "goede", "am", "de", "den", "der", "einem", "einen", "jeden")
)
_NOT_ONE_DAY = "".join(f"(?<!{word} )" for word in ("any", "black", "each", "every", "good", "jeden", "jedem"))
_Reader = Callable[[re.Match[str], Now], Span | None]
_WORD = late_pattern(r"\w+")
_ENDINGS = ("", "n", "m", "r", "s")
_WHICH_WORDS = word_set("last past previous next coming upcoming this current") | {
    f"{word}{ending}" for word in word_set("letzte vorige vergangene nächste kommende diese") for ending in _ENDINGS
}
_DAY_WORDS = {said.split()[-1] for said in _DAYS}
_BEFORE_LAST_WORDS = {"last", *(f"vorletzte{ending}" for ending in _ENDINGS)}
_WEEKDAY_WORDS = {f"{day}{part}" for day in WEEKDAYS for part in ("", *_PARTS)}


def which(found: re.Match[str]) -> int:
    """Return -1, 1 or 0 for a match of the group `last`, `next` or `this`."""
    return -1 if found["last"] else 1 if found["next"] else 0


@frozen
class Phrase:
    """A span of wall time, and the place of its words in the text."""

    span: Span
    begin: int
    end: int


def phrases(text: str, now: Now) -> Iterator[Phrase]:
    """Yield the first phrase of each kind that lies within the calendar. `text` has single spaces."""
    words = frozenset(_WORD.findall(text.lower()))
    for pattern, needed, read in _PATTERNS:
        if words.isdisjoint(needed):
            continue
        for found in pattern.finditer(text):
            span = _span(read, found, now)
            if span is not None:
                yield Phrase(span, *found.span())
                break


def _span(read: _Reader, found: re.Match[str], now: Now) -> Span | None:
    try:
        return read(found, now)
    except OverflowError:
        return None


def count(said: str) -> tuple[int, int]:
    """Return the least and the most that a number means; `said` is a word or the digits that COUNT matches."""
    said = said.lower()
    return _COUNTS[said] if said in _COUNTS else (int(said), int(said))


def _ago(found: re.Match[str], now: Now) -> Span:
    least, most = count(found["count"])
    unit = UNITS[found["unit"].lower()]
    if unit == "weekend":
        return wall_time.unit(now.wall, unit, -least)
    if unit not in _CLOCK:
        return wall_time.ago(now.wall, unit, least, most)
    step, slack = _CLOCK[unit]
    return now.back(most * step + slack), now.back(max(least * step - slack, timedelta()))


def _relative(found: re.Match[str], now: Now) -> Span | None:
    way, word = which(found), found["unit"].lower()
    unit = UNITS[word]
    several = found["count"] is not None or word in _PLURALS
    rolling = several or found["rolling"] is not None or (found["last"] or "").lower().endswith("past")
    if unit == "weekend" or (not rolling and unit not in {"day", *_CLOCK}):
        return wall_time.unit(now.wall, unit, way)
    if way == 0 or not rolling:
        return None
    most = count(found["count"])[1] if found["count"] else _MANY if several else 1
    if unit in _CLOCK:
        return (now.back(most * _CLOCK[unit][0]), now.wall) if way < 0 else None
    return wall_time.since(now.wall, unit, most) if way < 0 else wall_time.coming(now.wall, unit, most)


def _before_last(found: re.Match[str], now: Now) -> Span:
    return wall_time.unit(now.wall, UNITS[(found["unit"] or found["einheit"]).lower()], -2)


def _weekend(_: re.Match[str], now: Now) -> Span:
    return wall_time.unit(now.wall, "weekend", 0 if now.wall.weekday() in wall_time.WEEKEND else -1)


def _day(found: re.Match[str], now: Now) -> Span:
    word = found["word"].lower()
    part = "evening" if word == "tonight" else _PARTS[found["part"].lower()] if found["part"] else None
    days = _DAYS[word]
    if word == "heute" and part == "night" and now.wall.hour < _NOON:
        days = -1
    return _part_of(wall_time.day(now.wall, days), part)


def _part_of_today(found: re.Match[str], now: Now) -> Span | None:
    part, way = _PARTS[found["part"].lower()], which(found)
    return None if way > 0 else _part_of(wall_time.day(now.wall, way), part)


def _weekday(found: re.Match[str], now: Now) -> Span:
    today, wanted = now.wall.weekday(), WEEKDAYS[found["weekday"].lower()]
    if found["week"]:
        week = found["week"].lower()
        days = wanted - today + 7 * (-1 if week[0] == "l" else 1 if week[0] == "n" else 0)
    elif found["next"]:
        days = (wanted - today) % 7 or 7
    elif found["this"]:
        days = wanted - today
    else:
        days = -((today - wanted) % 7 or 7)
    part = found["compound"] or found["part"]
    return _part_of(wall_time.day(now.wall, days), _PARTS[part.lower()] if part else None)


def _season(found: re.Match[str], now: Now) -> Span | None:
    begins = _SEASONS[found["season"].lower()]
    years = range(now.wall.year - 2, now.wall.year + 3)
    spans = [wall_time.months(year, begins, 3) for year in years]
    if found["last"]:
        return max(span for span in spans if span[1] <= now.wall)
    if found["next"]:
        return min(span for span in spans if span[0] > now.wall)
    held = (span for span in spans if span[0] <= now.wall < span[1])
    return next(held, wall_time.months(now.wall.year, begins, 3))


def _season_of(found: re.Match[str], _: Now) -> Span:
    return wall_time.months(int(found["year"]), _SEASONS[found["season"].lower()], 3)


def _part_of(day: Span, part: str | None) -> Span:
    return wall_time.part(day[0], part) if part else day


_PATTERNS: tuple[tuple[re.Pattern[str], frozenset[str], _Reader], ...] = tuple(
    (late_pattern(rf"(?<![\w.,])(?:{form})(?!\w)", re.IGNORECASE), frozenset(needed), read)
    for form, needed, read in (
        (rf"(?P<word>{_any(_DAYS)}){_NOT_TOMORROW}(?: (?:in the |at |in der |am )?{_PART})?", _DAY_WORDS, _day),
        (rf"(?:(?P<last>last|letzte)|(?P<next>(?!))|(?P<this>this|diesen)) {_PART}", _PARTS, _part_of_today),
        (rf"{COUNT} {_UNIT} ago", {"ago"}, _ago),
        (rf"vor (?:etwa |ungefähr |rund )?{COUNT} {_UNIT}", {"vor"}, _ago),
        (
            rf"(?P<rolling>(?:in|over|during|within|for|throughout) the )?(?:the )?{_WHICH}(?: {COUNT})? {_UNIT}",
            _WHICH_WORDS,
            _relative,
        ),
        (
            rf"the {_UNIT} before last|(?:die |der |das |den |dem )?vorletzte[nmrs]? (?P<einheit>{_any(UNITS)})",
            _BEFORE_LAST_WORDS,
            _before_last,
        ),
        (r"(?:over|on|at|during) the weekend|(?:am|übers) wochenende", {"weekend", "wochenende"}, _weekend),
        (
            rf"{_NOT_ONE_DAY}(?:{_WHICH} )?(?P<weekday>{_any(WEEKDAYS)})(?P<compound>{_any(_PARTS)})?"
            rf"(?: (?:in the |at |am )?{_PART})?"
            r"(?: (?:of )?(?P<week>last|this|next|letzte|diese|nächste)[rn]? (?:week|woche))?",
            _WEEKDAY_WORDS,
            _weekday,
        ),
        (rf"(?:the |in the )?{_WHICH} (?P<season>{_any(_SEASONS)})", _SEASONS, _season),
        (rf"(?P<season>{_any(_SEASONS)})(?: of| des jahres)? (?P<year>[12]\d{{3}})", _SEASONS, _season_of),
    )
)
"""Each pattern with words of which it cannot do without all, lower-case: a text that has none is not searched."""
