import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.learning.validity import Validity, read_validity
from recollect.memory.temporal.dates import Times, read_date, says_time

NOW = datetime(2026, 1, 20, 3, 4, 5, tzinfo=UTC)


def at(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def read(quote: str, valid_from: str | None = None, valid_to: str | None = None) -> Validity:
    return read_validity(valid_from, valid_to, quote, said_at=NOW)


JUNE = at(2026, 6)
QUOTES: list[tuple[str, datetime | None, datetime | None]] = [
    ("I live in Rome until May.", None, JUNE),
    ("until the end of May", None, JUNE),
    ("Until May 2027, I'm in Rome", None, at(2027, 6)),
    ("till January", None, at(2026, 2)),
    ("until 2027", None, at(2028)),
    ("until 2026-05", None, JUNE),
    ("until 2026-05-31", None, JUNE),
    ("until 31 May", None, JUNE),
    ("until the 31st of May", None, JUNE),
    ("until May 5th, 2027", None, at(2027, 5, 6)),
    ("until May 5", None, at(2026, 5, 6)),
    ("until January 19", None, at(2027, 1, 20)),
    ("bis Mai", None, JUNE),
    ("bis Ende Mai", None, JUNE),
    ("bis zum 31. Mai", None, JUNE),
    ("bis 31.05.2026", None, JUNE),
    ("since 2019", at(2019), None),
    ("I've lived here since May", at(2025, 5), None),
    ("since January", at(2026, 1), None),
    ("since 5 May 2024", at(2024, 5, 5), None),
    ("seit Mai 2020", at(2020, 5), None),
    ("seit dem 3. M\u00e4rz 2020", at(2020, 3, 3), None),
    ("ab Mai wohne ich in Rom", at(2026, 5), None),
    ("as of May I work at ACME", at(2026, 5), None),
    ("starting in 2027", at(2027), None),
    ("from May on", at(2026, 5), None),
    ("from May until July", at(2026, 5), at(2026, 8)),
    ("from November until February", at(2025, 11), at(2026, 3)),
    ("from 2019 to 2021", at(2019), at(2022)),
    ("von 2019 bis 2021", at(2019), at(2022)),
    ("from March to June 2024", at(2024, 3), at(2024, 7)),
    ("from 2019 through 2021", at(2019), at(2022)),
    ("I lived in Rome until 2019", at(2019), at(2020)),
    ("since 2019 and until May", at(2019), JUNE),
    ("until 29 February", None, at(2028, 3)),
    ("since August last year", at(2025, 8), None),
    ("I was there from May last year until June", at(2025, 5), at(2026, 7)),
    ("until March next year", None, at(2027, 4)),
    ("seit August letzten Jahres", at(2025, 8), None),
]
NO_DATES = [
    *("", "I live in Rome", "until I die", "since then", "until further notice", "My rent went up from 1950 to 2050"),
    *("a wine from 2019", "I got the cat from April", "I'm from May", "I don't start until May", "nicht bis Mai"),
    *("until 2000 euros", "until 20", "since 12:30", "until 2026-13", "until 31 February", "since May's party"),
    *("I may move", "I turned 2019 pages since noon"),
]


@pytest.mark.parametrize(("quote", "valid_from", "valid_to"), QUOTES)
def test_plain_dates_of_the_quote(quote: str, valid_from: datetime | None, valid_to: datetime | None) -> None:
    assert read(quote) == Validity(valid_from, valid_to)


@pytest.mark.parametrize("quote", NO_DATES)
def test_no_plain_date(quote: str) -> None:
    assert read(quote) == Validity()


STATED: list[tuple[str | None, str | None, str, datetime | None, datetime | None]] = [
    ("2019", None, "It was 2019 when I came", at(2019), None),
    ("2019-05", None, "in May 2019", at(2019, 5), None),
    ("2019-05-03", None, "on 3 May 2019", at(2019, 5, 3), None),
    ("2025", None, "since last year", at(2025), None),
    (None, "2026-05", "for a few months", None, JUNE),
    (None, "2026-05-31", "for a few months", None, JUNE),
    (None, "2026-05-31T12:00:00Z", "on the 31st at noon", None, at(2026, 5, 31) + timedelta(hours=12)),
    (None, "2026-05-31T12:00+02:00", "on the 31st at noon", None, at(2026, 5, 31) + timedelta(hours=10)),
    (None, "May", "until then, in spring", None, JUNE),
    ("May", None, "it was spring", at(2025, 5), None),
    # The quote's own word goes before a date within it, or right behind it.
    (None, "2026-05", "until May", None, JUNE),
    (None, "2026-05-01", "until May", None, JUNE),
    (None, "2026-05-31", "until May", None, JUNE),
    (None, "2026-06-01", "until May", None, JUNE),
    ("2019-06-01", None, "since 2019", at(2019), None),
    # The model may know better which May it is.
    (None, "2025-05", "I lived there until May", at(2025, 5), at(2025, 6)),
    (None, "2027-05", "until May", None, at(2027, 6)),
    # No dates at all.
    ("today", "null", "I live here now", None, None),
    ("2026-01-20", None, "I live here now", None, None),
    ("", " ", "since always", None, None),
]


@pytest.mark.parametrize(("valid_from", "valid_to", "quote", "begins", "ends"), STATED)
def test_dates_of_the_model(
    valid_from: str | None, valid_to: str | None, quote: str, begins: datetime | None, ends: datetime | None
) -> None:
    assert read(quote, valid_from, valid_to) == Validity(begins, ends)


@pytest.mark.parametrize("date", ["soon", "2026-13", "31.02.2026", "9999-12-31", "0000", "2026-05-31T99:00", "5" * 500])
def test_an_unreadable_date_does_not_lose_the_fact(date: str) -> None:
    assert read("for 5 years", None, date) == Validity(remark="its valid_to could not be read")
    assert read("until May", None, date).valid_to == JUNE


def test_a_date_without_a_trace_in_the_message_is_not_believed() -> None:
    assert read("I live in Rome", "2019", "2027") == Validity(
        remark="its valid_from was left out: the message names no such time; "
        "its valid_to was left out: the message names no such time"
    )
    believed = read_validity("2019", None, "I live in Rome", said_at=NOW, message=Times.of("For years now."))
    assert believed == Validity(at(2019))


def test_an_end_before_the_beginning_is_a_problem() -> None:
    assert read("in 5 years", "2026-05", "2026-04").problem == "it would end before it begins"
    assert read("in 5 years", "2026-05", "2026-05").problem is None


TIMED = [
    *("tomorrow", "in May", "until may", "next week", "n\u00e4chste Woche", "depuis hier", "desde ayer"),
    *("da ieri", "amanh\u00e3", "\u0432\u0447\u0435\u0440\u0430", "\u660e\u5929", "\u6765\u9031", "on Friday"),
]


@pytest.mark.parametrize("text", TIMED)
def test_words_of_time(text: str) -> None:
    assert says_time(text)


@pytest.mark.parametrize(
    ("text", "date", "borne_out"),
    [
        ("I moved here in 2019", "2019-05", True),
        ("class of '19", "2019", True),
        ("on 3.5. I move", "2026-05-03", True),
        ("\u0662\u0660\u0661\u0669", "2019", True),
        ("I have 7 cats", "2019", False),
        ("I have 7 cats, for years", "2019", True),
        ("I have cats", "2019", False),
    ],
)
def test_a_date_is_borne_out_by_a_word_of_time_or_its_own_numbers(text: str, date: str, borne_out: bool) -> None:
    assert Times.of(text).bear_out(date) is borne_out


@pytest.mark.parametrize("text", ["", "I live in Rome", "I may move", "Ich wohne in Rom", "\u6211\u4f4f\u7f57\u9a6c"])
def test_no_words_of_time(text: str) -> None:
    assert not says_time(text)


WORDS = st.sampled_from(
    ["until", "since", "from", "to", "May", "2019", "31", ".", "-", "the", "of", "end", "T12:00", "bis"]
)


@given(st.lists(WORDS, max_size=12).map(" ".join), st.text(max_size=20), st.text(max_size=20))
def test_nothing_raises_and_an_end_is_never_before_its_beginning(quote: str, one: str, other: str) -> None:
    for valid_from, valid_to in ((None, None), (one, other), (quote, one), (other, quote)):
        validity = read(quote, valid_from, valid_to)
        if validity.valid_from is not None and validity.valid_to is not None:
            assert validity.valid_from < validity.valid_to


@pytest.mark.parametrize("piece", ["until ", "from ", "since May ", "2019-", " ", "5", "from May to ", "not "])
def test_a_hostile_quote_takes_no_time(piece: str) -> None:
    quote = (piece * 32_000)[:32_000]
    started = time.process_time()
    read(quote, quote, quote)
    read_date(quote)
    assert time.process_time() - started < 0.2
