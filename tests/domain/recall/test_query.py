from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.index.bm25 import query_weights, stems
from recollect.memory.recall.query import PreparedQuery, prepare_query
from recollect.memory.values.period import Period

NAMES = ("Caroline", "Melanie")
PERIOD = Period(datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 5, 1, tzinfo=UTC) + timedelta(days=31))


def asked(text: str, *names: str) -> PreparedQuery:
    return prepare_query(text, names=names or NAMES)


@given(st.text(max_size=200))
def test_without_names_the_text_stays_as_it_is(text: str) -> None:
    found = prepare_query(text, period=PERIOD)
    assert found.dense_text == text
    assert found.bm25 == query_weights(text)
    assert found.period == PERIOD
    assert found.speaker is None


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=4))
def test_any_text_and_any_names_will_do(text: str, names: list[str]) -> None:
    found = prepare_query(text, names=names)
    assert found.speaker is None or found.speaker in names
    assert 0 <= found.relevance(text) <= 1


@pytest.mark.parametrize(
    ("text", "dense", "left"),
    [
        ("What did Caroline research?", "What did I research?", "research"),
        ("What is Caroline's plan?", "What is my plan?", "plan"),
        ("What is caroline\u2019s plan?", "What is my plan?", "plan"),
        ("When did CAROLINE paint", "When did I paint", "paint"),
        ("What do Mel and her kids paint?", "What do I and her kids paint?", "kid paint"),
        ("Did Caroline like Melanie's dress?", "Did I like my dress?", "like dress"),
        ("Which Carolines swim?", "Which Carolines swim?", "carolin swim"),
        ("Caroline?", "Caroline?", "carolin"),
    ],
)
def test_a_speaker_speaks_of_themselves(text: str, dense: str, left: str) -> None:
    found = asked(text)
    assert found.dense_text == dense
    assert found.stems == set(left.split())
    assert set(found.bm25.indices) == set(query_weights(left).indices)


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("What did Caroline research?", "Caroline"),
        ("What did Mel cook?", "Melanie"),
        ("What did Caroline say to Melanie?", "Caroline"),
        ("What did Caroline think of Melanie's dress?", "Caroline"),
        ("Which of Caroline's plans did Melanie like?", "Melanie"),
        ("What have Caroline and Melanie done?", None),
        ("Do Melanie or Caroline swim?", None),
        ("What did she research?", None),
        ("Who are Caroline, Melanie?", None),
    ],
)
def test_the_one_who_is_asked_about(text: str, speaker: str | None) -> None:
    assert asked(text).speaker == speaker


def test_names_that_are_words_too() -> None:
    assert asked("what will may do", "Will", "May").speaker is None
    assert asked("what did Will do", "Will", "May").speaker == "Will"
    assert asked("in May 2023", "Will", "Ada").speaker is None


def test_a_first_name_stands_for_the_whole_where_it_is_nobody_elses() -> None:
    assert asked("What did Ada say?", "Ada Lovelace", "Bob").speaker == "Ada Lovelace"
    assert asked("What did Ada Lovelace say?", "Ada Lovelace", "Bob").dense_text == "What did I say?"
    assert asked("What did Ada say?", "Ada Lovelace", "Ada Byron").speaker is None


def test_a_nickname_must_be_of_one_and_long_enough() -> None:
    assert asked("What did Mar say?", "Maria", "Martin").speaker is None
    assert asked("What did Ma say?", "Maria", "Bob").speaker is None


@pytest.mark.parametrize(
    ("text", "when", "several", "you"),
    [
        ("When did I move?", True, False, False),
        ("How long have I lived here?", True, False, False),
        ("In which year was it?", True, False, False),
        ("Wann bin ich umgezogen?", True, False, False),
        ("Quand ai-je déménagé ?", True, False, False),
        ("How many dogs are there?", False, True, False),
        ("Wie viele Hunde gibt es?", False, False, False),
        ("What books did she read?", False, True, False),
        ("What kind of music does she like?", False, True, False),
        ("What have they in common?", False, True, False),
        ("What is this?", False, False, False),
        ("What does she do?", False, False, False),
        ("What was it?", False, False, False),
        ("Which book did you recommend?", False, False, True),
        ("Was hast du mir empfohlen?", False, False, True),
        ("Tell me when it was", False, False, False),
    ],
)
def test_what_a_question_asks_for(text: str, when: bool, several: bool, you: bool) -> None:
    found = prepare_query(text)
    assert (found.asks_when, found.asks_for_several, found.to_assistant) == (when, several, you)


def test_a_passage_is_as_relevant_as_it_has_the_querys_words() -> None:
    found = asked("Where did Caroline adopt the dog?")
    assert found.relevance("She adopted two dogs.") == 1.0
    assert found.relevance("Her dog is old.") == 0.5
    assert found.relevance("Nothing of that kind.") == 0.0
    assert prepare_query("What is it?").relevance("It is what it is.") == 0.0


def test_only_the_beginning_of_a_long_text_is_taken_apart() -> None:
    found = asked(f"Caroline swims. {'word ' * 500}Melanie dances.")
    assert found.dense_text.startswith("I swims.")
    assert found.dense_text.endswith("Melanie dances.")
    assert found.speaker == "Caroline"
    assert set(stems("dances")) <= found.stems
