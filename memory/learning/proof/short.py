# ruff: noqa: RUF001 - words of many languages
"""Short quotes: recognises quotes of one word, and the questions that they answer. Pure."""

from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.punctuation import QUESTION_MARKS, SENTENCE_ENDS
from recollect.memory.language.words import word_set
from recollect.memory.learning.proof.evidence import heard
from recollect.memory.learning.proof.vocabulary import CASELESS
from recollect.memory.values.frozen import frozen

_YES = word_set(
    "yes yeah yep yup sure correct right exactly indeed absolutely definitely true ok okay ja jawohl genau stimmt "
    "richtig "
    "oui ouais exactement si sí claro correcto exacto sì certo esatto sim claro да ага верно tak "
    "はい うん ええ そうです "
    "是 是的 对 对的 對 嗯 네 예 evet"
)
_NO = word_set(
    "no nope nah never nein nö nee non jamais nunca não нет nie いいえ ううん 不 不是 没有 沒有 아니요 아니 hayır false"
)
_FILLERS = word_set(
    "i do am is it that's i'm we please thanks have was that did das ich stimmt merci please, c'est es so"
)
_QUESTION = late_pattern(rf"[^{SENTENCE_ENDS}\n]*[{QUESTION_MARKS}]")
_WORD = late_pattern(r"[^\W_](?:[\w'\u2019.,-]*[^\W_])?")
_IDEOGRAPHS = late_pattern("[\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]")
_HEAVY, _LIGHT = 0.5, 0.25
"""The share of a word that one character of a script without spaces is: ideographs and Hangul, and others."""
_MOST_ASKED = 4_000


@frozen
class Answer:
    """Holds a yes or no to a question: `text` is the folded question, `denies` says no."""

    text: str
    denies: bool


def is_one_word(quote: str) -> bool:
    """Tell whether a folded quote is at most one word: in scripts without spaces, a few characters."""
    weight = 0.0
    for found in _WORD.findall(quote):
        signs = sum(map(len, CASELESS.findall(found)))
        heavy = len(_IDEOGRAPHS.findall(found))
        plain = len(found) - signs
        weight += heavy * _HEAVY + (signs - heavy) * _LIGHT if signs else 1.0
        weight += 1.0 if signs and plain else 0.0
    return weight <= 1.0 or all(word in _YES | _NO | _FILLERS for word in quote.replace(",", " ").split())


def answer_of(quote: str, asked: str) -> Answer | None:
    """Return the yes or no that a short quote gives to the last question in `asked`; None if it is no such answer."""
    said = [word.strip(",.!'") for word in quote.split()]
    is_no, is_yes = any(word in _NO for word in said), any(word in _YES for word in said)
    questions = _QUESTION.findall(heard(asked[-_MOST_ASKED:]).lines)
    if is_yes == is_no or not questions:
        return None
    return Answer(questions[-1].strip(), is_no)
