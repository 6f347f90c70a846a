"""Dates as people and models write them: a year, a month, a day or an instant. Pure; all times are UTC."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.words import word_set
from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("january januar jänner jan", "february februar feber feb", "march märz maerz mar mär mrz"),
            *("april apr", "may mai", "june juni jun", "july juli jul", "august aug", "september sept sep"),
            *("october oktober oct okt", "november nov", "december dezember dec dez"),
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\b\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})", r"(?P<year>[1-9]\d{3})"
_FORMS = tuple(
    late_pattern(form, re.IGNORECASE)
    for form in (
        r"(?P<instant>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)",
        rf"{_YEAR}[-/](?P<number>\d{{1,2}})[-/]{_DAY}",
        rf"{_DAY}\.\s?(?P<number>\d{{1,2}})\.\s?{_YEAR}",
        rf"(?:the |den |dem )?{_DAY}(?:st|nd|rd|th|\.)? (?:of )?{_MONTH}(?:(?:,? |,){_YEAR})?",
        rf"{_MONTH} (?:the )?{_DAY}(?:st|nd|rd|th)?(?!\d)(?:(?:,? |,){_YEAR})?",
        rf"{_MONTH}(?:,? (?:of )?{_YEAR})?",
        rf"{_YEAR}[-/](?P<number>\d{{1,2}})",
        _YEAR,
    )
)
_STARTS = late_pattern(rf"(?<![\w.,:/$\u20ac\u00a3#-])\d|(?<!\w){_MONTH}", re.IGNORECASE)
_ENDS = late_pattern(
    r"(?!\w|[-/:.,]\d|\s*[\u20ac$\u00a3%]|['\u2019]s\b"
    r"| (?:euros?|dollars?|pounds?|steps|calories|people|users|k[mg]|miles)\b)"
)
_YEAR_IN_WORDS = late_pattern(
    r",? (?:of |in |des )?(?:the )?(?:(?P<last>last|previous|past|letzten|vorigen|vergangenen)"
    r"|(?P<next>next|coming|n\u00e4chsten|kommenden)|this|current|dieses) (?:year|jahre?s)(?!\w)",
    re.IGNORECASE,
)
_FIRST_YEAR, _LAST_YEAR = 1000, 9990
_LEAP_YEARS = 9
"""How many years to try: nine in a row always have a 29 February."""
_TIME_WORDS = word_set(
    "january february march april june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday today tonight yesterday tomorrow now currently nowadays recently lately soon "
    "since until till ago next last past previous coming day days week weeks weekend month months year years decade "
    "decades hour hours minute minutes morning afternoon evening night noon midnight spring summer autumn winter "
    "christmas easter birthday childhood always forever temporarily januar jänner februar märz mai juni juli oktober "
    "dezember montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag heute gestern vorgestern morgen "
    "übermorgen jetzt seit bis ab nächste nächsten nächster nächstes letzte letzten letztes vorige kommende tag tage "
    "tagen woche wochen wochenende monat monate monaten jahr jahre jahren stunde stunden minuten abend nacht frühling "
    "sommer herbst weihnachten ostern janvier février mars avril juin juillet août septembre octobre novembre "
    "décembre lundi mardi mercredi jeudi vendredi samedi dimanche aujourd hui hier demain maintenant depuis jusqu "
    "prochain prochaine dernier dernière jour jours semaine semaines mois an ans année années heure heures matin soir "
    "nuit printemps été automne hiver noël enero febrero marzo abril mayo junio julio agosto septiembre octubre "
    "noviembre diciembre lunes martes miércoles jueves viernes sábado domingo hoy ayer mañana ahora desde hasta "
    "próximo próxima último última día días semana semanas mes meses año años hora horas tarde noche primavera verano "
    "otoño invierno navidad gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre lunedì martedì "
    "mercoledì giovedì venerdì sabato domenica oggi ieri domani adesso ora dal fino prossimo prossima scorso scorsa "
    "giorno giorni settimana settimane mese mesi anno anni ore mattina sera notte estate autunno inverno natale "
    "pasqua janeiro fevereiro março maio junho julho setembro outubro novembro dezembro segunda terça quarta quinta "
    "sexta hoje ontem amanhã agora até passado passada dia dias mês ano manhã noite verão outono natal январь января "
    "январе февраль февраля феврале март марта марте апрель апреля апреле май мая мае июнь июня июне июль июля июле "
    "август августа августе сентябрь сентября сентябре октябрь октября октябре ноябрь ноября ноябре декабрь декабря "
    "декабре понедельник вторник среду четверг пятницу субботу воскресенье сегодня вчера завтра сейчас теперь до "
    "следующий следующем прошлый прошлом день дня дней неделя неделю недели месяц месяца месяцев год года году лет "
    "час часов утром вечером ночью весной летом осенью зимой"
) | {
    f"{day}{part}"
    for day in word_set("montag dienstag mittwoch donnerstag freitag samstag sonntag")
    for part in word_set("morgen vormittag mittag nachmittag abend nacht")
}
_NUMBER = late_pattern(r"\d{1,9}")
_WORD = late_pattern(r"[^\W\d_]+")
_MAY = late_pattern(r"\bMay\b|(?i:\b(?:in|until|till|since|from|by|of|next|last|this|early|late|mid)[ -]may\b)")
_SIGNS_OF_TIME = late_pattern("[年月日号週周天昨今明曜時点點]")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Dated:
    """A date as it was written: with `instant`; or with `year`; or with `month` and without a year."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    instant: datetime | None = None

    def coming(self, at: datetime) -> Period | None:
        """Return the period that it names; without a year the first that is not over at `at`. None: no such day."""
        return self._nearest(range(at.year, at.year + _LEAP_YEARS), lambda period: period.end > at)

    def begun(self, at: datetime) -> Period | None:
        """Return the period that it names; without a year the last that has begun at `at`. None: no such day."""
        return self._nearest(range(at.year, at.year - _LEAP_YEARS, -1), lambda period: period.begin <= at)

    def _nearest(self, years: Iterable[int], fits: Callable[[Period], bool]) -> Period | None:
        if self.instant is not None:
            return Period(self.instant, self.instant)
        if self.year is not None:
            return self._in(self.year)
        found = (self._in(year) for year in years)
        return next((period for period in found if period is not None and fits(period)), None)

    def _in(self, year: int) -> Period | None:
        if year > _LAST_YEAR:
            return None
        try:
            begin = datetime(year, self.month or 1, self.day or 1, tzinfo=UTC)
        except ValueError:
            return None
        if self.day is not None:
            return Period(begin, begin + timedelta(days=1))
        if self.month in {None, 12}:
            return Period(begin, datetime(year + 1, 1, 1, tzinfo=UTC))
        return Period(begin, begin.replace(month=begin.month + 1))


def date_starts(text: str) -> Iterator[int]:
    """Yield the places in `text` where a date may begin: at a month's name, or at a digit."""
    return (found.start() for found in _STARTS.finditer(text))


def read_date(text: str, *, at: datetime | None = None) -> tuple[Dated, str] | None:
    """Return the date that `text` begins with, and the text behind it; None where it begins with none.

    With `at`, the time when it was said, its year may be given in words: "August last year".
    """
    folded = " ".join(text.split())
    for form in _FORMS:
        found = form.match(folded)
        if found and _ENDS.match(folded, found.end()):
            dated = _dated(found.groupdict())
            if dated is not None:
                return _with_year(dated, folded[found.end() :], at)
    return None


def _with_year(dated: Dated, rest: str, at: datetime | None) -> tuple[Dated, str]:
    """Return the date in the year that `rest` begins with in words, if any, and the text behind that."""
    year = _YEAR_IN_WORDS.match(rest) if at is not None and dated.month and dated.year is None else None
    if at is None or year is None:
        return dated, rest
    way = -1 if year["last"] else 1 if year["next"] else 0
    return replace(dated, year=at.year + way), rest[year.end() :]


def _dated(parts: Mapping[str, str | None]) -> Dated | None:
    if parts.get("instant"):
        return _instant(parts["instant"] or "")
    name, number = parts.get("month"), parts.get("number")
    if name and name.lower() not in _MONTHS:
        return None  # Ignoring case, the pattern also matches a long s: "Augu\u017ft".
    month = _MONTHS[name.lower()] if name else int(number) if number else None
    year, day = parts.get("year"), parts.get("day")
    dated = Dated(int(year) if year else None, month, int(day) if day else None)
    if dated.year is not None and not _FIRST_YEAR <= dated.year <= _LAST_YEAR:
        return None
    return dated if dated.coming(_EPOCH) is not None else None


def _instant(text: str) -> Dated | None:
    try:
        read = datetime.fromisoformat(text)
        utc = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return Dated(instant=utc) if _FIRST_YEAR <= utc.year <= _LAST_YEAR else None


@frozen
class Times:
    """The times in a text: whether it names one in words, and its numbers."""

    named: bool
    numbers: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "Times":
        """Return the times of `text`, in linear time."""
        return cls(says_time(text), frozenset(map(int, _NUMBER.findall(text))))

    def bear_out(self, date: str) -> bool:
        """Tell whether the text may have named `date`: it names a time, or has a number of the date ("19" for 2019)."""
        stated = {int(number) for number in _NUMBER.findall(date)}
        return self.named or not self.numbers.isdisjoint(stated | {number % 100 for number in stated})


NOTHING = Times(named=False, numbers=frozenset())


def says_time(text: str) -> bool:
    """Tell whether `text` names a time in words: a month, a weekday, or a word such as "tomorrow" or "years"."""
    words = frozenset(_WORD.findall(text.casefold()))
    if not _TIME_WORDS.isdisjoint(words):
        return True
    if "may" in words and _MAY.search(text):
        return True
    return not text.isascii() and _SIGNS_OF_TIME.search(text) is not None
