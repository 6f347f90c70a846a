"""The ends of sentences and the question marks, in several scripts."""

import pytest

from recollect.memory.language.punctuation import QUESTION_MARKS, SENTENCE_ENDS, asks
from recollect.memory.language.sentences import sentences

TEXTS = [
    (["It costs 3.5 euros.", "Is it much?", "Yes!"], " "),
    (["\u6211\u5728\u3002", "\u4f60\u597d\u5417\uff1f", "\u597d\uff01"], ""),
    (["\u0645\u0627 \u0627\u0633\u0645\u0643\u061f", "\u0627\u0633\u0645\u064a \u0644\u064a\u0644\u0649."], " "),
    (["\u092e\u0948\u0902 \u0920\u0940\u0915 \u0939\u0942\u0901\u0964", "\u0914\u0930 \u0924\u0941\u092e?"], " "),
    (["\u1230\u120b\u121d\u1362", "\u12a5\u1295\u12f4\u1275 \u1290\u1205\u1367"], " "),
]


@pytest.mark.parametrize(("parts", "between"), TEXTS)
def test_sentences_of_every_script_are_told_apart(parts: list[str], between: str) -> None:
    assert sentences(between.join(parts)) == parts


@pytest.mark.parametrize("mark", QUESTION_MARKS)
def test_every_question_mark_asks_and_ends_a_sentence(mark: str) -> None:
    assert asks(f"abc{mark} ")
    assert mark in SENTENCE_ENDS
