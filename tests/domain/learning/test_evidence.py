import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.learning.proof.evidence import quote_problem

FOUND = [
    ("I live in Paris", "Hi! I live in Paris now."),
    ("i LIVE  in\nparis", "Hi! I live in Paris now."),
    ("I'm Ada", "Hello, I\u2019m Ada."),
    ('"I\'m Ada"', "Hello, I'm Ada."),
    ("\u201cThe Who\u201d", 'I like "The Who" a lot'),
    ("\ufb01ve cats", "I have five cats"),
    ("\uff21\uff44\uff41", "Call me Ada"),
    ("Stra\u00dfe 5", "I live at STRASSE 5."),
    ("36", "36"),
    ("1.5", "I drink 1.5 litres"),
    ("\u5317\u4eac", "\u6211\u4f4f\u5728\u5317\u4eac\u3002"),
    ("\uc11c\uc6b8", "\uc800\ub294 \uc11c\uc6b8\uc5d0 \uc0b4\uc544\uc694"),
    ("I'm Ada", "I'm Ada, who are you?"),
    ("call me Al", "Can you call me Al?"),
    ("I'm Ada. Who are you?", "I'm Ada. Who are you?"),
    ("I like jazz", "Do I like jazz? I like jazz."),
    ("Ada", "I'm Ada's brother and I'm Ada"),
]

NOT_FOUND = [
    ("", "Hi", "there is no quote"),
    ("  '' ", "Hi", "there is no quote"),
    ("...", "Well...", "the quote holds no word"),
    ("\U0001f642", "\U0001f642", "the quote holds no word"),
    ("he", "the other", "the quote is not in the user's message"),
    ("I live in Rome", "I live in Paris", "the quote is not in the user's message"),
    ("I like jazz", "I like\u2026 no, I hate jazz", "the quote is not in the user's message"),
    ("1", "I drink 1.5 litres", "the quote is not in the user's message"),
    ("5", "I drink 1.5 litres", "the quote is not in the user's message"),
    ("\u0915", "\u0915\u0940", "the quote is not in the user's message"),
    ("What is my name?", "What is my name?", "the quote is a question"),
    ("What is my name", "Hi! What is my name?", "the quote is a question"),
    ("my name", "What is my name?", "the quote is a question"),
    ("I like jazz", "Ada here, do I like jazz?", "the quote is a question"),
    ("Is my doctor Dr. Smith?", "Is my doctor Dr. Smith?", "the quote is a question"),
    ("\u6211\u53eb\u4ec0\u4e48\uff1f", "\u6211\u53eb\u4ec0\u4e48\uff1f", "the quote is a question"),
    ("a" * 2001, "a" * 3000, "the quote is longer than 2000 characters"),
]


@pytest.mark.parametrize(("quote", "message"), FOUND)
def test_a_quote_of_the_users_words_stands(quote: str, message: str) -> None:
    assert quote_problem(quote, message) is None


@pytest.mark.parametrize(("quote", "message", "problem"), NOT_FOUND)
def test_what_is_no_quote_says_why(quote: str, message: str, problem: str) -> None:
    assert quote_problem(quote, message) == problem


@given(quote=st.text(max_size=40), message=st.text(max_size=200))
def test_no_text_raises(quote: str, message: str) -> None:
    problem = quote_problem(quote, message)
    assert problem is None or problem.startswith(("the", "there"))


@pytest.mark.parametrize(
    ("quote", "message"),
    [("a" * 1_999, "a" * 32_000), ("a", "a " * 16_000), ("a?", "a?" * 16_000), ("x", ",;:.!?" * 5_333 + "x?")],
)
def test_a_hostile_message_takes_no_time(quote: str, message: str) -> None:
    started = time.process_time()
    quote_problem(quote, message)
    assert time.process_time() - started < 0.2
