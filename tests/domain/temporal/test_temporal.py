# ruff: noqa: RUF001 - words of many languages, written as their speakers do
import time
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.language.words import word_set
from recollect.memory.temporal.interval_questions import asks_for_nothing_else
from recollect.memory.temporal.temporal import Found, find_interval, read_timezone

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 1, 20, 13, tzinfo=UTC)
"""A Tuesday, 14:00 in Berlin."""


def find(text: str, now: datetime = NOW, zone: tzinfo = BERLIN) -> Found | None:
    return find_interval(text, now=now, timezone=zone)


def local(text: str, now: datetime = NOW, zone: tzinfo = BERLIN) -> tuple[str, str] | None:
    """Return what was found, as clocks in the zone show it."""
    found = find(text, now, zone)
    if found is None:
        return None
    shown = [f"{end.astimezone(zone):%Y-%m-%d %H:%M}" for end in (found.period.begin, found.period.end)]
    return shown[0].removesuffix(" 00:00"), shown[1].removesuffix(" 00:00")


def day(text: str) -> tuple[str, str]:
    return text, f"{date.fromisoformat(text) + timedelta(days=1)}"


LAST_WEEK = ("2026-01-12", "2026-01-19")
MAY = ("2025-05-01", "2025-06-01")
ENGLISH = [
    ("today", day("2026-01-20")),
    ("yesterday", day("2026-01-19")),
    ("the day before yesterday", day("2026-01-18")),
    ("tomorrow", day("2026-01-21")),
    ("yesterday evening", ("2026-01-19 17:00", "2026-01-20")),
    ("yesterday in the morning", ("2026-01-19 04:00", "2026-01-19 12:00")),
    ("this morning", ("2026-01-20 04:00", "2026-01-20 12:00")),
    ("tonight", ("2026-01-20 17:00", "2026-01-21")),
    ("last night", ("2026-01-19 18:00", "2026-01-20 06:00")),
    ("last week", LAST_WEEK),
    ("this week", ("2026-01-19", "2026-01-26")),
    ("next week", ("2026-01-26", "2026-02-02")),
    ("the week before last", ("2026-01-05", "2026-01-12")),
    ("last month", ("2025-12-01", "2026-01-01")),
    ("this month", ("2026-01-01", "2026-02-01")),
    ("last year", ("2025-01-01", "2026-01-01")),
    ("this year", ("2026-01-01", "2027-01-01")),
    ("last weekend", ("2026-01-17", "2026-01-19")),
    ("over the weekend", ("2026-01-17", "2026-01-19")),
    ("this weekend", ("2026-01-24", "2026-01-26")),
    ("early last month", ("2025-12-01", "2025-12-11")),
    ("the end of last year", ("2025-09-01", "2026-01-01")),
    ("3 days ago", day("2026-01-17")),
    ("twelve days ago", day("2026-01-08")),
    ("a week ago", ("2026-01-10", "2026-01-17")),
    ("two weeks ago", ("2026-01-03", "2026-01-10")),
    ("a couple of weeks ago", ("2025-12-27", "2026-01-10")),
    ("two months ago", ("2025-11-05", "2025-12-05")),
    ("a year ago", ("2024-07-21", "2025-07-22")),
    ("two weekends ago", ("2026-01-10", "2026-01-12")),
    ("two hours ago", ("2026-01-20 11:30", "2026-01-20 12:30")),
    ("20 minutes ago", ("2026-01-20 13:35", "2026-01-20 13:45")),
    ("in the last 3 days", ("2026-01-17", "2026-01-21")),
    ("over the past two weeks", ("2026-01-06", "2026-01-21")),
    ("in the last month", ("2025-12-20", "2026-01-21")),
    ("the last 24 hours", ("2026-01-19 14:00", "2026-01-20 14:00")),
    ("in the next two days", ("2026-01-21", "2026-01-23")),
    ("on Monday", day("2026-01-19")),
    ("on Tuesday", day("2026-01-13")),
    ("last Friday", day("2026-01-16")),
    ("next Friday", day("2026-01-23")),
    ("this Friday", day("2026-01-23")),
    ("on Friday evening", ("2026-01-16 17:00", "2026-01-17")),
    ("Friday of last week", day("2026-01-16")),
    ("since Monday", ("2026-01-19", "2026-01-21")),
    ("in January", ("2026-01-01", "2026-02-01")),
    ("last January", ("2025-01-01", "2025-02-01")),
    ("next January", ("2027-01-01", "2027-02-01")),
    ("in May", MAY),
    ("last May", MAY),
    ("this May", ("2026-05-01", "2026-06-01")),
    ("next May", ("2026-05-01", "2026-06-01")),
    ("early May", ("2025-05-01", "2025-05-11")),
    ("in mid-May", ("2025-05-11", "2025-05-21")),
    ("late May", ("2025-05-21", "2025-06-01")),
    ("in May 2023", ("2023-05-01", "2023-06-01")),
    ("on 3 June 2023", day("2023-06-03")),
    ("on Saturday, 3 June 2023", day("2023-06-03")),
    ("June 3rd", day("2025-06-03")),
    ("December 1,2023", day("2023-12-01")),
    ("3.6.2023", day("2023-06-03")),
    ("2023-06-03", day("2023-06-03")),
    ("2023-06-03T23:30:00Z", day("2023-06-04")),
    ("on 29 February", day("2024-02-29")),
    ("in 2022", ("2022-01-01", "2023-01-01")),
    ("in late 2022", ("2022-09-01", "2023-01-01")),
    ("before May 2023", ("1970-01-01", "2023-05-01")),
    ("until May 2023", ("1970-01-01", "2023-06-01")),
    ("since May", ("2025-05-01", "2026-01-21")),
    ("after May 2023", ("2023-06-01", "2026-01-21")),
    ("from 2020 to 2022", ("2020-01-01", "2023-01-01")),
    ("between August 11 and August 15 2023", ("2023-08-11", "2023-08-16")),
    ("the week before August 3, 2023", ("2023-07-27", "2023-08-03")),
    ("two weeks before August 11, 2023", ("2023-07-25", "2023-08-01")),
    ("the Sunday before October 25, 2022", day("2022-10-23")),
    ("the Monday after October 25, 2022", day("2022-10-31")),
    ("over the weekend before 4th October, 2023", ("2023-09-30", "2023-10-02")),
    ("the week of 3 June 2023", ("2023-05-29", "2023-06-05")),
    ("in the first weekend of October 2023", ("2023-10-07", "2023-10-09")),
    ("during the last week of August 2023", ("2023-08-25", "2023-09-01")),
    ("last Friday on 23 January, 2022", day("2022-01-23")),
    ("last summer", ("2025-06-01", "2025-09-01")),
    ("this winter", ("2025-12-01", "2026-03-01")),
    ("last winter", ("2024-12-01", "2025-03-01")),
    ("next summer", ("2026-06-01", "2026-09-01")),
    ("summer of 2023", ("2023-06-01", "2023-09-01")),
]
GERMAN = [
    ("heute", day("2026-01-20")),
    ("heute morgen", ("2026-01-20 04:00", "2026-01-20 12:00")),
    ("heute früh", ("2026-01-20 04:00", "2026-01-20 12:00")),
    ("heute Abend", ("2026-01-20 17:00", "2026-01-21")),
    ("morgen", day("2026-01-21")),
    ("übermorgen", day("2026-01-22")),
    ("gestern", day("2026-01-19")),
    ("gestern Abend", ("2026-01-19 17:00", "2026-01-20")),
    ("letzte Nacht", ("2026-01-19 18:00", "2026-01-20 06:00")),
    ("vorgestern", day("2026-01-18")),
    ("letzte Woche", LAST_WEEK),
    ("in der vorigen Woche", LAST_WEEK),
    ("vergangene Woche", LAST_WEEK),
    ("vorletzte Woche", ("2026-01-05", "2026-01-12")),
    ("diese Woche", ("2026-01-19", "2026-01-26")),
    ("nächste Woche", ("2026-01-26", "2026-02-02")),
    ("letzten Monat", ("2025-12-01", "2026-01-01")),
    ("letztes Jahr", ("2025-01-01", "2026-01-01")),
    ("am Wochenende", ("2026-01-17", "2026-01-19")),
    ("vor drei Tagen", day("2026-01-17")),
    ("vor zwei Wochen", ("2026-01-03", "2026-01-10")),
    ("vor einem Jahr", ("2024-07-21", "2025-07-22")),
    ("vor ein paar Tagen", ("2026-01-15", "2026-01-19")),
    ("in den letzten drei Tagen", ("2026-01-17", "2026-01-21")),
    ("am Montag", day("2026-01-19")),
    ("am Montagabend", ("2026-01-19 17:00", "2026-01-20")),
    ("letzten Freitag", day("2026-01-16")),
    ("seit Montag", ("2026-01-19", "2026-01-21")),
    ("im Mai", MAY),
    ("Anfang Mai", ("2025-05-01", "2025-05-11")),
    ("im Mai 2023", ("2023-05-01", "2023-06-01")),
    ("am 3. Juni", day("2025-06-03")),
    ("am 3. Juni 2023", day("2023-06-03")),
    ("vom 3. Juni bis 5. Juni 2023", ("2023-06-03", "2023-06-06")),
    ("im letzten Sommer", ("2025-06-01", "2025-09-01")),
]
ELSEWHERE = [
    ("qu'avons-nous discuté hier ?", day("2026-01-19"), "hier"),
    ("de quoi avons-nous parlé la semaine dernière", LAST_WEEK, "la semaine dernière"),
    ("il y a trois jours", day("2026-01-17"), "il y a trois jours"),
    ("il y a 2 ans", ("2023-07-21", "2024-07-21"), "il y a 2 ans"),
    ("lundi dernier", day("2026-01-19"), "lundi dernier"),
    ("en mars", ("2025-03-01", "2025-04-01"), "en mars"),
    ("le 3 juin 2023", day("2023-06-03"), "le 3 juin 2023"),
    ("¿de qué hablamos ayer?", day("2026-01-19"), "ayer"),
    ("la semana pasada", LAST_WEEK, "la semana pasada"),
    ("hace dos semanas", ("2026-01-03", "2026-01-10"), "hace dos semanas"),
    ("di cosa abbiamo parlato ieri", day("2026-01-19"), "ieri"),
    ("il mese scorso", ("2025-12-01", "2026-01-01"), "mese scorso"),
    ("o que discutimos ontem", day("2026-01-19"), "ontem"),
    ("wat hebben we gisteren besproken", day("2026-01-19"), "gisteren"),
    ("vorig jaar", ("2025-01-01", "2026-01-01"), "vorig jaar"),
    ("w zeszłym tygodniu", LAST_WEEK, "w zeszłym tygodniu"),
    ("о чём мы говорили вчера", day("2026-01-19"), "вчера"),
    ("на прошлой неделе", LAST_WEEK, "на прошлой неделе"),
    ("в мае", MAY, "в мае"),
    ("昨日何を話した", day("2026-01-19"), "昨日"),
    ("先週", LAST_WEEK, "先週"),
    ("2023年6月3日", day("2023-06-03"), "2023年6月3日"),
    ("昨天说了什么", day("2026-01-19"), "昨天"),
    ("어제", day("2026-01-19"), "어제"),
]


@pytest.mark.parametrize(("text", "expected"), ENGLISH + GERMAN)
def test_english_and_german(text: str, expected: tuple[str, str]) -> None:
    assert local(text) == expected
    found = find(f"Oslo {text.upper()}: pizza?")
    assert found is not None
    assert (found.phrase, found.rest) == (text.upper(), "Oslo : pizza?")
    assert found == find(f" Oslo\t{text.upper()}:  pizza?\n")


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("August last year", "2025-08-01", "2025-09-01"),
        ("in August of last year", "2025-08-01", "2025-09-01"),
        ("in December this year", "2026-12-01", "2027-01-01"),
        ("in March next year", "2027-03-01", "2027-04-01"),
        ("on 3 August last year", "2025-08-03", "2025-08-04"),
        ("early August last year", "2025-08-01", "2025-08-11"),
        ("from June to August last year", "2025-06-01", "2025-09-01"),
        ("im August letzten Jahres", "2025-08-01", "2025-09-01"),
        ("im August des vergangenen Jahres", "2025-08-01", "2025-09-01"),
        ("last year", "2025-01-01", "2026-01-01"),
    ],
)
def test_a_month_may_have_its_year_in_words(text: str, begin: str, end: str) -> None:
    now = datetime(2026, 5, 20, 12, tzinfo=UTC)
    found = find_interval(f"Where was I {text}?", now=now, timezone=UTC)
    assert found is not None
    assert (f"{found.period.begin:%Y-%m-%d}", f"{found.period.end:%Y-%m-%d}") == (begin, end)
    assert found.phrase == text
    assert found.rest == "Where was I ?"


def test_a_verb_is_no_month_of_a_year() -> None:
    found = find_interval("It may last, and it may last year after year.", now=NOW, timezone=UTC)
    assert found is not None
    assert found.phrase == "last year"


@pytest.mark.parametrize(("text", "expected", "phrase"), ELSEWHERE)
def test_other_languages(text: str, expected: tuple[str, str], phrase: str) -> None:
    assert local(text) == expected
    found = find(text)
    assert found is not None
    assert found.phrase == phrase
    assert found.rest == " ".join(text.replace(phrase, "").split())


@pytest.mark.parametrize(
    "text",
    [
        *("", "?", "7", "what do I like", "What has John been up to recently?", "last time we spoke", "these days"),
        *("May I ask you something?", "it may be 3 may be 4", "answer 3 may be wrong", "he may 2 times", "we march on"),
        *("What did April say about June?", "every Monday I run", "on Mondays", "Good Friday", "Black Friday"),
        *("the 2022 world cup", "in 2022 km", "in 3000 years", "room 2023", "I have 3 days left", "order 12.5.2023.7"),
        *("99999 weeks ago", "99999999999999999999 days ago", "1.5 weeks ago", "in 0000", "after next week"),
        *("Guten Morgen", "am Morgen", "vor kurzem", "vor dem Haus", "was haben wir hier besprochen", "jeden Montag"),
        *("wat is hier gezegd", "j'ai 3 jours de congé", "il y a 99999 semaines", "the planet Mars", "Rio de Janeiro"),
        *("me gusta la pizza", "я люблю пиццу", "私はピザが好き", "我喜欢比萨"),
    ],
)
def test_no_time(text: str) -> None:
    assert find(text) is None


@pytest.mark.parametrize(
    ("text", "now", "zone", "begin", "end"),
    [
        ("yesterday", "2026-01-20T10:30", "Pacific/Auckland", "2026-01-18T11:00", "2026-01-19T11:00"),
        ("yesterday", "2026-01-20T11:30", "Pacific/Auckland", "2026-01-19T11:00", "2026-01-20T11:00"),
        ("today", "2026-01-20T05:00", "America/Los_Angeles", "2026-01-19T08:00", "2026-01-20T08:00"),
        ("last week", "2026-01-19T04:00", "America/New_York", "2026-01-05T05:00", "2026-01-12T05:00"),
        ("this year", "2026-01-01T00:30", "America/New_York", "2025-01-01T05:00", "2026-01-01T05:00"),
        ("today", "2026-03-29T12:00", "Europe/Berlin", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("yesterday", "2026-10-26T12:00", "Europe/Berlin", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("an hour ago", "2026-03-29T01:30", "Europe/Berlin", "2026-03-29T00:00", "2026-03-29T01:00"),
        ("an hour ago", "2026-10-25T01:30", "Europe/Berlin", "2026-10-25T00:00", "2026-10-25T01:00"),
        ("on 6 September 2026", "2026-09-10T12:00", "America/Santiago", "2026-09-06T04:00", "2026-09-07T03:00"),
        ("in May 2023", "2026-01-20T13:00", "Asia/Kolkata", "2023-04-30T18:30", "2023-05-31T18:30"),
        ("hier soir, nous avons ri", "2026-01-20T11:30", "Pacific/Auckland", "2026-01-19T11:00", "2026-01-20T11:00"),
        ("a month ago", "2026-03-31T12:00", "UTC", "2026-02-13T00:00", "2026-03-15T00:00"),
        ("last month", "2026-03-31T12:00", "UTC", "2026-02-01T00:00", "2026-03-01T00:00"),
        ("a year ago", "2024-02-29T12:00", "UTC", "2022-08-29T00:00", "2023-08-30T00:00"),
        ("last weekend", "2026-01-18T12:00", "UTC", "2026-01-10T00:00", "2026-01-12T00:00"),
        ("over the weekend", "2026-01-18T12:00", "UTC", "2026-01-17T00:00", "2026-01-19T00:00"),
        ("heute Nacht", "2026-01-20T08:00", "UTC", "2026-01-19T18:00", "2026-01-20T06:00"),
        ("heute Nacht", "2026-01-20T20:00", "UTC", "2026-01-20T18:00", "2026-01-21T06:00"),
    ],
)
def test_zones_and_the_days_on_which_clocks_change(text: str, now: str, zone: str, begin: str, end: str) -> None:
    found = find(text, datetime.fromisoformat(f"{now}Z"), read_timezone(zone))
    assert found is not None
    assert [f"{time:%Y-%m-%dT%H:%M}" for time in (found.period.begin, found.period.end)] == [begin, end]


def test_a_day_that_a_zone_left_out_is_no_time() -> None:
    assert find("yesterday", datetime(2011, 12, 30, 12, tzinfo=UTC), ZoneInfo("Pacific/Apia")) is None


def test_now_may_come_in_any_zone() -> None:
    assert find("yesterday") == find("yesterday", NOW.astimezone(timezone(timedelta(hours=-9))))


@pytest.mark.parametrize("now", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)])
def test_the_ends_of_the_calendar_raise_nothing(now: datetime) -> None:
    texts = [text for text, _ in ENGLISH + GERMAN] + [text for text, _, _ in ELSEWHERE]
    for text in [
        *texts,
        "in December",
        "next December",
        "on 31 December",
        "in 3 Jahren",
        "в прошлом году",
        "l'an dernier",
    ]:
        for zone in (UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))):
            find(text, now, zone)


def test_letters_that_count_as_others() -> None:
    for text in ("3 day\u017f ago", "last wee\u212a", "th\u0131s week", "th\u0130s week", "in Augu\u017ft 2023"):
        found = find(text)
        assert found is not None
        assert found.phrase == text


def test_only_the_beginning_of_a_long_text_is_looked_at_and_all_of_it_is_left() -> None:
    found = find("pizza yesterday " + "and so on " * 3_000)
    assert found is not None
    assert len(found.rest.split()) == 9_001
    assert find("and so on " * 3_000 + "yesterday") is None


WORDS = word_set(
    "the day before yesterday last next this past week weekend month year of on in since until between and to early "
    "late end first two 3 31 2022 99999 ago Monday , May June 3. - vor letzte Woche am gestern Abend morgen il y a "
    "trois jours hier la semaine dernière на прошлой неделе 3日前 昨日 T12:00 Z ' \u0663 \U0001f600 \u200b"
)
PIECES = st.sampled_from(sorted(WORDS))
INSTANTS = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1))  # noqa: DTZ001 - hypothesis asks for naive bounds


@settings(deadline=None)
@given(
    st.one_of(st.lists(PIECES, max_size=12).map(" ".join), st.text(max_size=80)),
    INSTANTS,
    st.sampled_from(("UTC", "Europe/Berlin", "Pacific/Auckland", "America/Havana", "Pacific/Apia")),
)
def test_an_interval_is_in_utc_and_begins_before_it_ends(text: str, now: datetime, zone: str) -> None:
    found = find(text, now.replace(tzinfo=UTC), read_timezone(zone))
    if found is not None:
        assert found.period.begin < found.period.end
        assert found.period.begin.tzinfo is found.period.end.tzinfo is UTC
        assert found.phrase in " ".join(text.split())


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "9",
            "May ",
            "the ",
            "last ",
            "in the last ",
            "between 3 June and ",
            "3 ",
            ". ",
            "the day before ",
            "vor ein ",
        ),
        *(" ", "a couple of ", "on Monday, ", "a", "1-", "semana ", "hier nous ", "в ", "日", "3日", "昨", "il y a "),
        *("lundi ", "\u0663", "\U0001f600", "e\u0301", "2023-06-03T", "first week of ", "early mid late "),
    ],
)
def test_long_texts_take_no_time(piece: str) -> None:
    quote = (piece * 32_000)[:32_000]
    find("昨日 hier lundi ayer nous")
    find(quote)
    started = time.process_time()
    find(quote)
    assert time.process_time() - started < 0.1


ALONE = [
    *("what did we discuss yesterday?", "what did we talk about last week", "What happened on Monday?", "yesterday"),
    *("so, what was said two weeks ago", "Can you summarize last week, please?", "what were we talking about in May"),
    *("tell me everything from 3 June 2023", "and on Tuesday?", "show me our conversations of last month"),
    *("Worüber haben wir gestern gesprochen?", "was war letzte Woche", "Was ist am Montag passiert?"),
    *("fasse die letzte Woche zusammen", "de quoi avons-nous parlé hier ?", "que s'est-il passé la semaine dernière ?"),
    *("¿de qué hablamos ayer?", "¿qué pasó el lunes pasado?", "di cosa abbiamo parlato la settimana scorsa?"),
    *("o que discutimos ontem?", "wat hebben we gisteren besproken?", "о чём мы говорили вчера?"),
    *("o czym rozmawialiśmy w zeszłym tygodniu?", "昨日何を話した？", "昨天我们聊了什么？"),
    *("in which order did we discuss things yesterday?", "what did we cover last week, in chronological order?"),
    *("give me an overview of last week", "timeline of May", "which topics came up on Monday?"),
    *("in welcher Reihenfolge haben wir gestern die Themen besprochen?", "gib mir einen Überblick über letzte Woche"),
    *("liste alles auf, was wir gestern besprochen haben", "erzähl mir von gestern"),
]
NOT_ALONE = [
    *("what did we discuss about pizza yesterday", "what did Anna say last week", "what did I eat on Monday"),
    *(
        "who called me yesterday",
        "where was I in May",
        "what about the war last year",
        "what did we say of 7 on Monday",
    ),
    *("was haben wir gestern über Pizza gesagt", "Wer war gestern da?", "de quoi Anna a-t-elle parlé hier ?"),
    *("what did I order yesterday?", "which order arrived on Monday?"),
    *("¿qué comimos ayer?", "昨日ピザについて何を話した", "what did we discuss yesterday " + "and then " * 50),
]


@pytest.mark.parametrize(("text", "alone"), [*((text, True) for text in ALONE), *((text, False) for text in NOT_ALONE)])
def test_whether_a_question_asks_for_a_time_and_nothing_else(text: str, alone: bool) -> None:
    found = find(text)
    assert found is not None
    assert asks_for_nothing_else(found.rest) is alone


def test_time_zones_by_name() -> None:
    assert read_timezone("UTC") is UTC
    for name in ("Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST"):
        assert NOW.astimezone(read_timezone(name)) == NOW


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "Mars/Olympus",
            "America",
            "Europe/",
            "/etc/passwd",
            "../UTC",
            "Europe/../UTC",
            "Europe/Berlin\n",
            "x" * 5_000,
        ),
        *("posix/UTC", "right/UTC", "posixrules", "localtime", "tzdata.zi", "\x00", "\ud800", "é", "+01:00", "CON"),
    ],
)
def test_no_such_time_zone(name: str) -> None:
    with pytest.raises(ValueError, match="IANA"):
        read_timezone(name)
