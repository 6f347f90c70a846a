"""The summary without a model: the user's most telling sentences, word for word. Deterministic and pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.fact import fold
from memory.summarizer import Summary, SummaryRequest
from memory.summary_text import cut_at_word, sentences
from memory.tokens import CHARACTERS_PER_TOKEN
from memory.words import words

MODEL = "extract"
_MOST_LINE_CHARACTERS = 300
_MOST_SENTENCES = 200
"""How many sentences of one message are looked at."""
_SAID = "User: "
_FIRST_PERSON = words(
    "i i'm i've i'd i'll my mine me we our us ich mein meine meinen meinem meiner mich mir wir unser unsere je j'ai "
    "j'habite mon ma mes moi nous notre nos yo mi mis me soy estoy tengo vivo nosotros nuestro nuestra io mio mia miei "
    "sono ho noi nostro eu meu minha meus minhas sou estou tenho moro nós nosso nossa "
    "я мой моя мои меня мне мы наш наша"
)
_DECIDES = words(
    "decided decide agreed agree plan planning must need want deadline due until because moved bought booked married "
    "born works work live lives called named prefer allergic entschieden beschlossen vereinbart brauche will muss "
    "décidé besoin veux dois decidido necesito quiero debo deciso voglio devo decidi preciso quero devo"
    " решил нужно хочу"
)
_FIRST_PERSON_SIGNS = re.compile("[\u6211\u50d5\u79c1\u4ffa]")
_NAME = re.compile(r"(?<=[\w,] )[^\W\d_]\w+")
_SHORT, _SHORT_UNSPACED = 3, 5
"""Fewer words (or, in scripts without spaces, no more characters) are small talk unless something in them tells."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of a summary: `place` is its order in the conversation, `weight` how much it tells."""

    text: str
    place: int
    weight: int


class ExtractiveSummarizer:
    """Implements `Summarizer` without a model: works offline, invents nothing."""

    async def summarise(self, request: SummaryRequest) -> Summary:
        """The old summary's lines and the user's sentences that tell most, in their order, within the budget."""
        said = (exchange.user.content for exchange in request.exchanges)
        return Summary(extract(request.old, said, tokens=request.tokens), MODEL, "extract")


def extract(old: str | None, said: Iterable[str], *, tokens: int) -> str:
    """A summary of at most `tokens` tokens, one line a sentence; "" where nobody said anything.

    Where not all fits, the old summary keeps at least half of the budget, and the more telling and the later lines
    stay; questions and small talk go first. What is said again (equal after folding) stands once, where it stood.
    """
    carried = [_Line(line, place, _weight(line)) for place, line in enumerate(_lines(old or ""))]
    known = {fold(line.text.removeprefix(_SAID)) for line in carried}
    added: list[_Line] = []
    for message in said:
        for sentence in sentences(message)[:_MOST_SENTENCES]:
            folded = fold(sentence)
            if folded and folded not in known:
                known.add(folded)
                text = _SAID + cut_at_word(sentence, _MOST_LINE_CHARACTERS)
                added.append(_Line(text, len(carried) + len(added), _weight(sentence)))
    budget = tokens * CHARACTERS_PER_TOKEN
    kept = _fitting(carried, budget // 2)
    kept += _fitting(added, budget - _cost(kept))
    kept += _fitting([line for line in carried if line not in kept], budget - _cost(kept))
    return "\n".join(line.text for line in sorted(kept, key=lambda line: line.place))


def _lines(old: str) -> list[str]:
    """The lines of an old summary: its own, or the sentences of one that somebody else wrote."""
    found: list[str] = []
    for line in old.splitlines():
        found += [line] if line.startswith(_SAID) else sentences(line)
    return [cut_at_word(line, _MOST_LINE_CHARACTERS) for line in found]


def _fitting(lines: Sequence[_Line], budget: int) -> list[_Line]:
    """The most telling lines, the later of equals first, as far as they fit; none that tells nothing."""
    kept: list[_Line] = []
    for line in sorted(lines, key=lambda line: (-line.weight, -line.place)):
        if line.weight and _cost([line]) <= budget:
            kept.append(line)
            budget -= _cost([line])
    return kept


def _cost(lines: Sequence[_Line]) -> int:
    """The characters of the lines, each with its line break."""
    return sum(len(line.text) + 1 for line in lines)


def _weight(sentence: str) -> int:
    """How much a sentence tells: 0 small talk, 1 a question, more for the user's own matters, numbers and names."""
    text = sentence.removeprefix(_SAID)
    said = text.casefold().replace("\u2019", "'").split()
    bare = {word.strip('.,;:!?()"') for word in said}
    personal = bool(bare & _FIRST_PERSON or _FIRST_PERSON_SIGNS.search(text))
    names = any(name[0].isupper() for name in _NAME.findall(text))
    more = 2 * personal + names + any(char.isdigit() for char in text) + bool(bare & _DECIDES)
    if not more and len(said) < _SHORT and not (_UNSPACED.search(text) and len(text) > _SHORT_UNSPACED):
        return 0
    return 1 if text.rstrip("\"')\u201d\u00bb ").endswith(("?", "\uff1f", "\u061f")) else 2 + more
