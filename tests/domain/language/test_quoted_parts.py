import time

import pytest

from recollect.memory.language.quoted_parts import own_words, speech

PASSED_ON = [
    ("Hi\n> I'm Bob\nok", "Hi\n         \nok"),
    ("a ```b``` c", "a ``` ``` c"),
    ("~~~\nb\n~~~\nc", "   \n \n   \nc"),
    ("```py\nb", "     \n "),
    ("x\n-----Original Message-----\ny", "x\n                          \n "),
    ("x\nForwarded message\ny", "x\n                 \ny".replace("y", " ")),
]
SAID: list[tuple[str, list[str]]] = [
    ("She said 'I'm Eva' once", ["'I'm Eva'"]),
    ("the dogs' toys, the cats' food, and don't", []),
    ("I'm 5' 11\" tall", []),
    (
        "\u201eIch\u201c \u00bba\u00ab \u00abb\u00bb \u300cc\u300d",
        ["\u201eIch\u201c", "\u00bba\u00ab", "\u00abb\u00bb", "\u300cc\u300d"],
    ),
    ('"open\nnext', ['"open']),
]


@pytest.mark.parametrize(("message", "left"), PASSED_ON)
def test_what_is_passed_on_is_blanked_in_its_place(message: str, left: str) -> None:
    assert own_words(message) == left


@pytest.mark.parametrize(("text", "quoted"), SAID)
def test_speech_stands_in_quotation_marks(text: str, quoted: list[str]) -> None:
    assert [text[begin:end] for begin, end in speech(text)] == quoted


@pytest.mark.parametrize(
    "piece", ["\u201c", '"', "'", " '", "```\n", "> ", "\u300c", "On 1\n", "-", "'a", "\u201ca\u201d "]
)
def test_a_hostile_text_takes_no_more_than_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        started = time.process_time()
        own_words(text)
        list(speech(text))
        return time.process_time() - started

    assert seconds(80_000) < 0.05 + 12 * seconds(20_000)
