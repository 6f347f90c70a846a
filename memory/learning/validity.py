"""Validity: reads the period in which a fact holds, as the user said it. Pure; times are UTC, an end is exclusive.

A fact that begins with a period (a year, a month, a day) begins with its first moment, and one that lasts until a
period lasts through its last: "until May" includes May.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set
from recollect.memory.temporal.dates import NOTHING, Dated, Times, read_date
from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period

_SINCE = late_pattern(r"\b(?:since|as of|starting(?: in| on)?|beginning(?: in| on)?|seit(?: dem)?|ab(?: dem)?)\s+")
_FROM = late_pattern(r"(?:\b(\w+)\s+)?\b(?:from|von|vom)\s+")
_UNTIL = late_pattern(r"\b(?:until|till?|bis)\s+(?:zum\s+|einschlie\u00dflich\s+)?(?:(?:the\s+)?end\s+of\s+|ende\s+)?")
_FROM_TO = late_pattern(r"\s*(?:until|till?|through|to|bis|[-\u2013])\s+(?:zum\s+)?(?:(?:the\s+)?end\s+of\s+|ende\s+)?")
_GOES_ON = late_pattern(r"\s*(?:on\b|onwards?\b|an\b)")
_COMING = late_pattern(r"as of|starting|beginning|ab")
_DENIED = late_pattern(r"\b(?:not|never|nicht|erst|kein\w*)\b|n't\b")
_NO_TIMES = word_set(
    "up down went go goes going rose rise grew grow fell fall increased decreased dropped raised ranges range ranging"
)
_NO_DATE = word_set("null none nil unknown n/a - now today present ongoing current currently")
_MOST_CHARACTERS = 2_000
_MOST_MATCHES = 20

_Resolve = Callable[[Dated], Period | None]


@frozen
class Validity:
    """Holds the period in which a fact holds; None: not said. `problem` says why it is impossible.

    `remark` names dates that were left out because they could not be used.
    """

    valid_from: datetime | None = None
    valid_to: datetime | None = None
    problem: str | None = None
    remark: str | None = None


@frozen
class _Said:
    """Holds the dates that a quote names plainly. `from_now_on`: the start lies ahead ("from May on")."""

    start: Dated | None = None
    end: Dated | None = None
    from_now_on: bool = False


def read_validity(
    proposal_from: str | None, proposal_to: str | None, quote: str, *, said_at: datetime, message: Times = NOTHING
) -> Validity:
    """Return the validity that a proposal states and its quote bears out, said at `said_at`.

    `message` holds the times that the whole message names. A model's date is believed only if the quote or the message
    bears it out. If it lies within a period that the quote names plainly ("since 2019", "until May"), that period
    holds. Without a model's date the quote's period holds.
    """
    said = _said(quote, said_at)
    spoken = (Times.of(quote[:_MOST_CHARACTERS]), message)
    remarks: list[str] = []
    stated_from = _stated("valid_from", proposal_from, spoken, remarks)
    stated_to = _stated("valid_to", proposal_to, spoken, remarks)
    until = _agreed(stated_to, said.end, lambda dated: dated.coming(said_at))
    start = _agreed(stated_from, said.start, _starting(said, until, said_at))
    valid_to = until.end if until is not None else None
    if start is not None and start.begin.date() == said_at.date():
        start = None  # A start on the day of the message adds nothing: the fact holds from its turn.
    valid_from = start.begin if start is not None else None
    if until is not None and valid_from is None and until.begin < until.end <= said_at:
        valid_from = until.begin  # A fact that had ended held at least in the period that its end names.
    if valid_to is not None and valid_from is not None and valid_to <= valid_from:
        return Validity(problem="it would end before it begins")
    return Validity(valid_from, valid_to, remark="; ".join(remarks) or None)


def _stated(field: str, text: str | None, spoken: Sequence[Times], remarks: list[str]) -> Dated | None:
    """Return the model's own date if the user's texts bear it out; else None, with a remark in `remarks`."""
    stripped = (text or "").strip(" .")
    if not stripped or stripped.casefold() in _NO_DATE:
        return None
    if not any(times.bear_out(stripped) for times in spoken):
        remarks.append(f"its {field} was left out: the message names no such time")
        return None
    read = read_date(stripped[:100])
    if read is None or read[1]:
        remarks.append(f"its {field} could not be read")
        return None
    return read[0]


def _agreed(stated: Dated | None, said: Dated | None, resolve: _Resolve) -> Period | None:
    """Return the quote's period if it includes the model's date or there is none, else the model's."""
    own = resolve(stated) if stated is not None else None
    plain = resolve(said) if said is not None else None
    return plain if own is None or (plain is not None and plain.names(own)) else own


def _starting(said: _Said, until: Period | None, said_at: datetime) -> _Resolve:
    """Return the function that picks the year of a start without one."""
    if until is not None:
        return lambda dated: dated.begun(until.begin)
    if said.from_now_on:
        return lambda dated: dated.coming(said_at)
    return lambda dated: dated.begun(said_at)


def _said(quote: str, at: datetime) -> _Said:
    """Find the plain dates of a quote, in English and German."""
    text = quote[:_MOST_CHARACTERS].casefold()
    found = _from_to(text, at)
    if found is not None:
        return found
    start = _first(_SINCE, text, at)
    until = None if _DENIED.search(text) else _first(_UNTIL, text, at)
    return _Said(
        start=start[0] if start else None,
        end=until[0] if until else None,
        from_now_on=bool(start and _COMING.match(start[1])),
    )


def _from_to(text: str, at: datetime) -> _Said | None:
    """Find the dates of "from 2019 to 2021" or "from May on". A bare "from 2019" may as well be a wine."""
    for count, found in enumerate(_FROM.finditer(text)):
        if count == _MOST_MATCHES or found[1] in _NO_TIMES:
            break
        start = read_date(text[found.end() : found.end() + 100], at=at)
        if start is None:
            continue
        onwards = _FROM_TO.match(start[1])
        end = read_date(start[1][onwards.end() :], at=at) if onwards else None
        if end is not None:
            return _Said(start[0], end[0])
        if _GOES_ON.match(start[1]):
            return _Said(start[0], from_now_on=True)
    return None


def _first(pattern: re.Pattern[str], text: str, at: datetime) -> tuple[Dated, str] | None:
    for count, found in enumerate(pattern.finditer(text)):
        if count == _MOST_MATCHES:
            break
        read = read_date(text[found.end() : found.end() + 100], at=at)
        if read is not None:
            return read[0], found[0]
    return None
