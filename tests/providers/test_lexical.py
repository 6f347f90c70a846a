import asyncio
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.providers.lexical import DIMENSION, LexicalEmbedder, embed, words


def likeness(one: str, other: str) -> float:
    return float(np.dot(embed(one), embed(other)))


@given(st.text())
def test_every_vector_has_length_one_or_no_words(text: str) -> None:
    vector = embed(text)
    assert len(vector) == DIMENSION
    assert np.linalg.norm(vector) == pytest.approx(1.0 if list(words(text)) else 0.0)


@given(st.text(min_size=1))
def test_case_and_width_do_not_matter(text: str) -> None:
    assert embed("Straße " + text) == embed("STRASSE " + text)
    assert likeness("\uff32\uff45\uff58", "rex") == pytest.approx(1.0)


@given(st.lists(st.sampled_from(["Rex", "dog", "Lisbon", "tea", "北京"]), min_size=1))
def test_the_order_of_words_does_not_matter(chosen: list[str]) -> None:
    assert likeness(" ".join(chosen), " ".join(reversed(chosen))) == pytest.approx(1.0)


@given(st.text(), st.text())
def test_similarity_is_a_cosine(one: str, other: str) -> None:
    assert -1.000001 <= likeness(one, other) <= 1.000001


@pytest.mark.parametrize("text", ["", "  ", "\n\t", "?!…", "🙂", "--- ***", "_"])
def test_text_without_words_is_zero(text: str) -> None:
    assert embed(text) == [0.0] * DIMENSION


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("What is my dog's name", "My dog is called Rex", "What is the weather in my town"),
        ("Where do I live?", "I live in Lisbon", "I do like tea"),
        ("Which instruments does she play?", "My sister plays the instrument beautifully", "My brother is a painter"),
        ("我的狗叫什么", "我有一只狗叫雷克斯", "今天天气很好"),
        ("私の犬の名前は", "犬の名前はレックスです", "今日は天気がいいです"),
        ("Wie heißt mein Hund?", "Mein Hund heißt Rex", "Mein Auto ist rot"),
        ("सेब पसंद है", "मुझे सेब बहुत पसंद है", "आज मौसम अच्छा है"),
        ("ฉันชอบชาเขียว", "เธอชอบชาเขียวมาก", "วันนี้ฝนตก"),
    ],
)
def test_what_shares_words_is_found(question: str, answer: str, other: str) -> None:
    assert likeness(question, answer) > 0.15
    assert likeness(question, answer) > 2 * likeness(question, other)


def test_stop_words_hardly_count() -> None:
    assert likeness("what is it that you are", "who are you and what is that") > 0.5
    assert likeness("what is the of Lisbon", "what is the of Rex") < 0.1


def test_signs_and_numbers_tell_apart() -> None:
    assert likeness("C++", "C#") < 0.1
    assert likeness("5551234", "5551235") < 0.1


def test_it_is_the_same_in_every_process() -> None:
    code = "from recollect.memory.providers.lexical import embed; print(repr(embed('My dog Rex, 犬, naïve')))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert seen == {repr(embed("My dog Rex, 犬, naïve"))}


def test_known_places_do_not_move() -> None:
    vector = np.array(embed("rex"))
    assert {int(at): round(float(vector[at]), 4) for at in np.flatnonzero(vector)} == PLACES


PLACES = {48: -0.7071, 184: -0.3162, 374: 0.3162, 384: 0.3162, 503: 0.3162, 948: -0.3162}


def test_a_long_text_is_hashed_as_a_short_one() -> None:
    """Beyond so many features NumPy adds them up: one more word turns the text over to it, and moves nothing."""
    numbered = [f"word{number}" for number in range(1_300)]
    lengths = range(1_000, 1_300, 20)
    neighbours = [likeness(" ".join(numbered[:at]), " ".join(numbered[: at + 20])) for at in lengths]
    assert min(neighbours) > 0.97


async def test_queries_and_documents_are_alike() -> None:
    embedder = LexicalEmbedder()
    await embedder.ping()
    assert await embedder.dimension() == DIMENSION
    assert await embedder.embed_documents(["My dog", "Rex"]) == [embed("My dog"), await embedder.embed_query("Rex")]
    assert await embedder.embed_documents([]) == []


async def test_a_long_text_leaves_the_loop_free() -> None:
    embedder = LexicalEmbedder()
    text = " ".join(f"word{number}" for number in range(4_000))[:32_000]
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    assert (await embedder.embed_documents([text] * 5))[0] == embed(text)
    ticking.cancel()
    assert ticks > 5


def test_a_message_takes_well_under_a_millisecond() -> None:
    message = "Yesterday I went with my sister Anna to the Italian restaurant near the river; the pasta was wonderful, "
    message = (message * 2)[:200]
    best = min(_timed(message) for _ in range(20))
    assert best < 0.001


def _timed(message: str) -> float:
    began = time.thread_time()
    embed(message)
    return time.thread_time() - began
