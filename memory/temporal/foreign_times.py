"""Times in languages other than English and German, read by dateparser. Importing this module takes 0.2 s.

It tries only short groups of words that the language uses for times, around a word that names one, and only a few of
them: dateparser's own search over a whole text takes too long for a request.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import islice

from dateparser.date import DateData, DateDataParser

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.temporal import wall_time
from recollect.memory.temporal.time_languages import time_words
from recollect.memory.temporal.time_phrases import Phrase
from recollect.memory.temporal.wall_time import Now, Span

_MOST_TRIES = 10
"""How many groups are tried, at about a millisecond each."""
_MOST_WORDS = 6
_TOKEN = late_pattern(r"[^\W\d_]+|\d+")
_WORD = late_pattern(r"[^\W\d_]+")
_BEFORE, _AFTER = late_pattern(r"(?<!\w)([^\W\d_]+) $"), late_pattern(r" ([^\W\d_]+)")
_LONGEST_WORD = 20
_NUMBER = late_pattern(r"\d+")
_LARGEST, _LARGEST_COUNT = 9_999, 999
_EAST_ASIA = {"ja", "zh", "zh-Hant"}
_EAST_ASIAN = late_pattern(
    r"(?:\d{4}\u5e74)?\d{1,2}\u6708(?:\d{1,2}[\u65e5\u53f7\u865f])?|\d{4}\u5e74"
    r"|\d{1,3}(?:\u65e5|\u5929|\u9031\u9593|\u5468|\u9031|\u304b\u6708|\u30f6\u6708|\u4e2a\u6708|\u500b\u6708|\u5e74)\u524d"
    r"|\u4e00\u6628[\u65e5\u5e74]|\u304a\u3068\u3068\u3044|[\u6628\u4eca\u524d][\u65e5\u5929\u5e74]"
    r"|[\u5148\u4eca\u4e0a\u8fd9\u9019\u672c](?:\u4e2a|\u500b)?[\u9031\u5468\u6708]|\u53bb\u5e74"
)
"""Times in scripts without spaces: 2023年6月3日, 3日前, 昨日, 先週, 上个月, 去年 and similar ones."""
_NUMBERS = {
    "es": ("un una", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce"),
    "it": ("un una", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "undici", "dodici"),
    "pt": ("um uma", "dois duas", "três", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez", "onze", "doze"),
    "fr": ("un une", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze"),
    "nl": ("een", "twee", "drie", "vier", "vijf", "zes", "zeven", "acht", "negen", "tien", "elf", "twaalf"),
    "pl": ("jeden", "dwa dwie", "trzy", "cztery", "pięć", "sześć", "siedem", "osiem", "dziewięć", "dziesięć"),
    "ru": ("один одну", "два две", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять", "десять"),
}
_RUSSIAN_MONTHS = {
    **{"январе": "январь", "феврале": "февраль", "марте": "март", "апреле": "апрель", "мае": "май", "июне": "июнь"},
    **{"июле": "июль", "августе": "август", "сентябре": "сентябрь", "октябре": "октябрь", "ноябре": "ноябрь"},
    "декабре": "декабрь",
}
_KNOWN_AS = {
    language: {word: str(number) for number, said in enumerate(names, start=1) for word in said.split()}
    for language, names in _NUMBERS.items()
}
"""Words that dateparser does not know, and the words or digits that stand for them."""
_KNOWN_AS["ru"] |= _RUSSIAN_MONTHS


def first_phrase(text: str, languages: tuple[str, ...], now: Now) -> Phrase | None:
    """Return the first time that the text names in one of `languages`, tried in their order.

    Within neighbouring known words, the longest group is tried first.

    Raises:
        OverflowError: it lies outside the calendar.
    """
    for language in languages:
        for begin, end in islice(_groups(text, language), _MOST_TRIES):
            span = _read(text[begin:end], language, now)
            if span is not None:
                return Phrase(span, *_widened(text, begin, end, language))
    return None


def _widened(text: str, begin: int, end: int, language: str) -> tuple[int, int]:
    """Return the group with neighbouring words of its time that dateparser does without: "lundi dernier"."""
    known = time_words(language)
    before, after = _BEFORE.search(text, max(0, begin - _LONGEST_WORD), begin), _AFTER.match(text, end)
    return (
        before.start() if before and before[1].casefold() in known else begin,
        after.end() if after and after[1].casefold() in known else end,
    )


def _groups(text: str, language: str) -> Iterator[tuple[int, int]]:
    if language in _EAST_ASIA:
        yield from (found.span() for found in _EAST_ASIAN.finditer(text))
        return
    vocabulary = _vocabulary(language)
    run: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text):
        known = token[0].casefold() in vocabulary or token[0].isdigit()
        if run and (not known or token.start() - run[-1].end() > 2):
            yield from _within(run, language)
            run = []
        if known:
            run.append(token)
    yield from _within(run, language)


def _within(run: list[re.Match[str]], language: str) -> Iterator[tuple[int, int]]:
    known = time_words(language)
    names = [token[0].casefold() in known if known else not token[0].isdigit() for token in run]
    for size in range(min(_MOST_WORDS, len(run)), 0, -1):
        for first in range(len(run) - size + 1):
            if any(names[first : first + size]):
                yield run[first].start(), run[first + size - 1].end()


@lru_cache(maxsize=32)
def _vocabulary(language: str) -> frozenset[str]:
    """Return all words with which dateparser reads the language's times."""
    data = import_module(f"dateparser.data.date_translation_data.{language}")
    said: list[str] = []
    waiting: list[object] = [value for key, value in data.info.items() if key not in {"name", "date_order"}]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            said += _TOKEN.findall(value.casefold())
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return frozenset(said) | _KNOWN_AS.get(language, {}).keys()


def _read(group: str, language: str, now: Now) -> Span | None:
    known = _KNOWN_AS.get(language, {})
    said = _WORD.sub(lambda word: known.get(word[0].casefold(), word[0]), group)
    read = _parse(said, language, now, "past", ("relative-time", "absolute-time"))
    if read.date_obj is None or read.period not in {"day", "week", "month", "year"}:
        return None
    numbers = [int(number) for number in _NUMBER.findall(said)]
    if any(number > _LARGEST for number in numbers):
        return None
    ahead = _parse(said, language, now, "future", ("relative-time",)).date_obj if numbers else None
    if ahead is None:
        return wall_time.unit(read.date_obj, read.period)
    if ahead != read.date_obj:
        return None  # "3 jours": a duration
    if numbers[0] > _LARGEST_COUNT:
        return None
    back = read.date_obj < now.wall
    return wall_time.ago(now.wall, read.period, *numbers[:1] * 2) if back else wall_time.unit(ahead, read.period)


def _parse(said: str, language: str, now: Now, prefer: str, parsers: tuple[str, ...]) -> DateData:
    settings = {
        "RELATIVE_BASE": now.wall,
        "PREFER_DATES_FROM": prefer,
        "TIMEZONE": "UTC",
        "RETURN_AS_TIMEZONE_AWARE": False,
        "PARSERS": list(parsers),
    }
    return DateDataParser(languages=[language], settings=settings).get_date_data(said)
