"""Times: compares times that a quote says with a claim's absolute ones ("last year" is 2025). Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.learning.proof.numbers import Numbers
from recollect.memory.temporal.dates import date_starts, read_date, says_time
from recollect.memory.temporal.temporal import find_interval
from recollect.memory.values.period import Period

_MONTHS = {
    word.casefold(): number
    for number, names in enumerate(
        (
            "january jan januar jänner janvier enero gennaio janeiro januari января январь январе stycznia styczeń",
            "february feb februar feber février febrero febbraio fevereiro februari февраля февраль феврале lutego "
            "luty",
            "march mar märz mrz mars marzo março maart марта март марте marca marzec",
            "april apr avril abril aprile апреля апрель апреле kwietnia kwiecień",
            "may mai mayo maggio maio mei maj мая май мае maja",
            "june jun juni juin junio giugno junho июня июнь июне czerwca czerwiec",
            "july jul juli juillet julio luglio julho июля июль июле lipca lipiec",
            "august aug août agosto augustus августа август августе sierpnia sierpień",
            "september sep sept septembre septiembre settembre setembro сентября сентябрь сентябре września wrzesień",
            "october oct oktober okt octobre octubre ottobre outubro октября октябрь октябре października październik",
            "november nov novembre noviembre novembro ноября ноябрь ноябре listopada listopad",
            "december dec dezember dez décembre diciembre dicembre dezembro декабря декабрь декабре grudnia grudzień",
        ),
        start=1,
    )
    for word in names.split()
}
_WEEKDAYS = {
    word: number
    for number, names in enumerate(
        (
            "monday mon montag lundi lunes lunedì понедельник 月曜 周一 星期一 월요일",
            "tuesday tue dienstag mardi martes martedì вторник 火曜 周二 星期二 화요일",
            "wednesday wed mittwoch mercredi miércoles mercoledì среду среда 水曜 周三 星期三 수요일",
            "thursday thu donnerstag jeudi jueves giovedì четверг 木曜 周四 星期四 목요일",
            "friday fri freitag vendredi viernes venerdì пятницу пятница 金曜 周五 星期五 금요일",
            "saturday sat samstag sonnabend samedi sábado sabato субботу суббота 土曜 周六 星期六 토요일",
            "sunday sun sonntag dimanche domingo domenica воскресенье 日曜 周日 星期日 일요일",
        )
    )
    for word in names.split()
}
_SPANS_YEARS = late_pattern(
    r"\b(?:years?|yrs?|old|aged?|turn(?:ed|ing)?|birthday|jahre?n?|alt|geworden|geburtstag|ans?|années?|años?|anni|anos"
    r"|jaar|лет|год|года|lat|år|decades?)\b|[岁歳才년살年]"
)
_WORD = late_pattern(r"[^\W\d_]+")
_YEAR = late_pattern(r"(?<!\d)[12]\d{3}(?!\d)")
_SIGNED_MONTH = late_pattern(r"(\d{1,2})\s?[月월]")
_CLOCK = late_pattern(
    r"(?<![a-z])[ap]\.?m\b|o'clock|\d ?uhr|\bhalf past\b|\bhalb\b|\bheures?\b|\d ?h\b|de la (?:tarde|noche|ma\u00f1ana)"
    r"|du (?:soir|matin)|de l'apr\u00e8s|abends|morgens|di sera|\u5348\u5f8c|\u4e0b\u5348|\u665a\u4e0a"
    r"|[\u6642\u65f6\u70b9\u9ede]|\d:\d"
)
_MOST_PHRASES = 4
_MOST_DATES = 20
_SLACK = timedelta(hours=14)
_FINEST = 0.1
"""A claimed date covers at least this share of the time that was said."""
_NOON = 12


@dataclass(frozen=True)
class SaidTimes:
    """Finds the times in a folded text, which was said at `at` (UTC)."""

    text: str
    at: datetime

    @cached_property
    def months(self) -> frozenset[int]:
        """Return the months (1-12) that the text names."""
        named = {_MONTHS[word] for word in _WORD.findall(self.text) if word in _MONTHS}
        return frozenset(named | {int(found[1]) for found in _SIGNED_MONTH.finditer(self.text)})

    @cached_property
    def spans(self) -> tuple[Period, ...]:
        """Return the first few times that the text names, as periods."""
        found = list[Period]()
        left = self.text
        while len(found) < _MOST_PHRASES and (one := find_interval(left, now=self.at, timezone=UTC)) is not None:
            found.append(one.period)
            if len(one.rest) >= len(left):
                break
            left = one.rest
        return tuple(found)

    def say(self, claimed: Period) -> bool:
        """Tell whether `claimed` meets a time of the text, within 14 hours, and is at least a tenth as long."""
        for span in self.spans:
            meets = claimed.begin <= span.end + _SLACK and claimed.end >= span.begin - _SLACK
            if meets and claimed.end - claimed.begin >= _FINEST * (span.end - span.begin):
                return True
        return False

    def say_year(self, year: int, numbers: Numbers) -> bool:
        """Tell whether the text says `year` by its distance from `at`, or by its last two digits."""
        if 1900 <= year < 2100 and str(year % 100) in numbers.readings:
            return True
        if _SPANS_YEARS.search(self.text) is None:
            return False
        distance = self.at.year - year
        return any(numbers.hold(str(number)) for number in {abs(distance), max(0, distance - 1)} - {0})

    def say_month(self, word: str, numbers: Numbers) -> bool:
        """Tell whether the text says the month that `word` names, in words or as a number."""
        month = _MONTHS[word]
        return month in self.months or numbers.hold(str(month))

    def say_weekday(self, word: str) -> bool:
        """Tell whether the text names the weekday in any language, or only a time that may fall on it."""
        named = {number for name, number in _WEEKDAYS.items() if name in self.text}
        return _WEEKDAYS[word] in named or (not named and says_time(self.text))

    def carried_numbers(self, claim: str, numbers: Numbers) -> frozenset[str]:
        """Return the numbers of the dates in a folded claim that the text says in other words."""
        carried = {str(month) for month in self.months}
        for date, period in _dates_of(claim, self.at):
            if self.say(period):
                carried |= set(re.findall(r"\d+", date))
        carried |= {year for year in _YEAR.findall(claim) if self.say_year(int(year), numbers)}
        return frozenset(carried | _clock_times(self.text, numbers))


def is_month(word: str) -> bool:
    """Tell whether a folded word is the name of a month."""
    return word in _MONTHS


def is_weekday(word: str) -> bool:
    """Tell whether a folded word is the name of a weekday."""
    return word in _WEEKDAYS


def _dates_of(claim: str, at: datetime) -> Iterator[tuple[str, Period]]:
    for count, begin in enumerate(date_starts(claim)):
        if count == _MOST_DATES:
            return
        piece = claim[begin : begin + 40]
        read = read_date(piece)
        period = read[0].begun(at) if read else None
        if read is not None and period is not None:
            yield piece[: len(piece) - len(read[1])], period


def _clock_times(text: str, numbers: Numbers) -> set[str]:
    """Return the hours in the other half of the day, and the numbers that "half past" stands for."""
    if _CLOCK.search(text) is None:
        return set()
    hours = {int(reading) for reading in numbers.readings if reading.isdigit() and len(reading) <= 2}
    later = {str(hour + _NOON) for hour in hours if hour <= _NOON} | {str(hour - 1) for hour in hours if hour}
    return later | {"00", "0", "30"}
