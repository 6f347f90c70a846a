import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.index.bm25 import (
    AVERAGE_LENGTH,
    K1,
    MOST_QUERY_WORDS,
    PRECEDING_WEIGHTS,
    B,
    document_weights,
    language_of,
    query_weights,
    stems,
    token_of,
)
from recollect.memory.language.lexemes import words
from recollect.memory.ports.vector_index import SparseVector

SOME_WORDS = ("dog", "dogs", "runs", "the", "über", "犬", "c++", "42", "été")
TEXTS = st.text(max_size=120) | st.lists(st.sampled_from(SOME_WORDS)).map(" ".join)


def weights(vector: SparseVector) -> dict[int, float]:
    return dict(zip(vector.indices, vector.values, strict=True))


def textbook(text: str) -> dict[int, float]:
    counts = Counter(token_of(stem) for stem in stems(text))
    length = sum(counts.values())
    return {
        token: count * (K1 + 1) / (count + K1 * (1 - B + B * length / AVERAGE_LENGTH))
        for token, count in counts.items()
    }


@given(TEXTS)
def test_a_texts_weights_are_the_textbooks(text: str) -> None:
    assert weights(document_weights(text)) == pytest.approx(textbook(text))


@given(TEXTS, st.lists(TEXTS, max_size=5))
def test_every_vector_is_one_that_the_index_takes(text: str, preceding: list[str]) -> None:
    for vector in (document_weights(text, preceding), query_weights(text)):
        assert len(set(vector.indices)) == len(vector.indices) == len(vector.values)
        assert all(0 <= token < 2**32 for token in vector.indices)
        assert all(math.isfinite(value) and 0 < value < K1 + 1 for value in vector.values)


@given(TEXTS)
def test_a_text_finds_itself(text: str) -> None:
    assert set(query_weights(text).indices) == set(document_weights(text).indices)
    assert set(query_weights(text).values) <= {1.0}


@given(TEXTS, st.lists(TEXTS, min_size=3, max_size=6))
def test_no_more_is_looked_at_than_there_are_weights(text: str, preceding: list[str]) -> None:
    assert document_weights(text, preceding) == document_weights(text, preceding[: len(PRECEDING_WEIGHTS)])


def test_what_stood_before_counts_less_the_farther_it_is() -> None:
    found = weights(document_weights("zebra", ["badger", "walrus", "ferret", "gecko"]))
    order = [found.get(token_of(word), 0.0) for word in ("zebra", "badger", "walrus", "ferret", "gecko")]
    assert order == sorted(order, reverse=True)
    assert order[3] > 0 == order[4]


def test_a_word_that_is_said_again_counts_more_and_ever_less_more() -> None:
    once, twice, thrice = (weights(document_weights("zebra " * count))[token_of("zebra")] for count in (1, 2, 3))
    assert once < twice < thrice
    assert twice - once > thrice - twice


def test_a_long_text_counts_less_for_a_word() -> None:
    filler = " ".join(f"w{number}" for number in range(200))
    short, long = (weights(document_weights(text))[token_of("zebra")] for text in ("zebra", f"zebra {filler}"))
    assert short > 2 * long


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I went to the dentist and it was fine", "english"),
        ("Ich war gestern beim Zahnarzt und es ist alles gut", "german"),
        ("Je suis allé chez le dentiste et c'est fini", "french"),
        ("Ayer fui al dentista y ya no me duele", "spanish"),
        ("Sono andato dal dentista e non mi fa più male", "italian"),
        ("Zebra", "english"),
        ("", "english"),
        ("昨日犬と散歩しました", "english"),
    ],
)
def test_a_language_shows_in_its_common_words(text: str, language: str) -> None:
    assert language_of(list(words(text))) == language


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Did she paint?", "She painted; she loves painting."),
        ("Welche Hunde hat sie?", "Sie hat einen Hund und eine Katze."),
        ("Quels chiens as-tu adoptés ?", "Nous avons adopté un chien de la rue."),
        ("¿Qué libros has leído?", "He leído un libro muy bueno en la playa."),
        ("Che libri hai letto?", "Ho letto il libro che mi hai dato."),
        ("犬の散歩", "昨日、犬の散歩に行きました"),
        ("\uff23\uff0b\uff0b or C#?", "I know c++ well."),
    ],
)
def test_other_forms_of_a_word_are_the_same_word(query: str, text: str) -> None:
    assert set(query_weights(query).indices) & set(document_weights(text).indices)


def test_what_says_nothing_has_no_weight() -> None:
    for text in ("", "  \n", "!?", "what is it that they are", "und der die das ist nicht was wir haben"):
        assert not document_weights(text).indices
        assert not query_weights(text).indices


def test_a_token_is_the_same_everywhere() -> None:
    assert token_of("zebra") == 0x15575DB6


def test_a_long_query_is_bounded() -> None:
    asked = query_weights(" ".join(f"word{number}x" for number in range(2_000)))
    assert len(asked.indices) == len(asked.values) == MOST_QUERY_WORDS
    assert asked.indices[0] == query_weights("word0x").indices[0]
