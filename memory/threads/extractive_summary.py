"""Summarises without a model: extracts the user's most telling sentences, word for word. Deterministic."""

from collections.abc import Iterable, Sequence

from typing_extensions import override

from recollect.memory.background.long_texts import off_loop
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.punctuation import CLOSING_MARKS, asks
from recollect.memory.language.words import word_set
from recollect.memory.ports.summariser import Summariser, Summary, SummaryTask
from recollect.memory.threads.summary_text import cut_at_word, summary_sentences
from recollect.memory.values.fact import fold
from recollect.memory.values.frozen import frozen
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN

MODEL = "extract"
_MOST_LINE_CHARACTERS = 300
_MOST_SENTENCES = 200
"""How many sentences of one message are read at most."""
_SAID = "User: "
_FIRST_PERSON = word_set(
    "i i'm i've i'd i'll my mine me we our us ich mein meine meinen meinem meiner mich mir wir unser unsere je j'ai "
    "j'habite mon ma mes moi nous notre nos yo mi mis me soy estoy tengo vivo nosotros nuestro nuestra io mio mia miei "
    "sono ho noi nostro eu meu minha meus minhas sou estou tenho moro nós nosso nossa "
    "я мой моя мои меня мне мы наш наша"
)
_DECIDES = word_set(
    "decided decide agreed agree plan planning must need want deadline due until because moved bought booked married "
    "born works work live lives called named prefer allergic entschieden beschlossen vereinbart brauche will muss "
    "décidé besoin veux dois decidido necesito quiero debo deciso voglio devo decidi preciso quero devo"
    " решил нужно хочу"
)
_FIRST_PERSON_SIGNS = late_pattern("[\u6211\u50d5\u79c1\u4ffa]")
_NAME = late_pattern(r"(?<=[\w,] )[^\W\d_]\w+")
_SHORT, _SHORT_UNSPACED = 3, 5
"""A sentence of fewer words (in scripts without spaces: of at most this many characters) is small talk, unless it has
a telling word, name or number."""
_UNSPACED = late_pattern("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")


@frozen
class _RatedLine:
    """One line of a summary: `place` is its order in the conversation, `weight` its importance, 0 or more."""

    text: str
    place: int
    weight: int


class ExtractiveSummariser(Summariser):
    """Implements `Summariser` without a model: works offline, invents nothing."""

    @override
    async def summarise(self, request: SummaryTask) -> Summary:
        """Extract the most telling lines of the old summary and of the user's messages; see `extract`."""
        said = [exchange.user.evidence for exchange in request.exchanges]
        text = await off_loop(lambda: extract(request.old, said, tokens=request.tokens), said)
        return Summary(text, MODEL, "extract")


def extract(old: str | None, said: Iterable[str], *, tokens: int) -> str:
    """Return a summary of at most `tokens` tokens, one line for each sentence; "" where nothing was said.

    If not everything fits, the old summary gets half of the budget first, and the more telling and later lines stay;
    small talk never enters, and questions are dropped first. A repeated sentence (equal after folding) enters once, at
    its first place.
    """
    carried = [_RatedLine(line, place, _weight(line)) for place, line in enumerate(_lines(old or ""))]
    known = {fold(line.text.removeprefix(_SAID)) for line in carried}
    added: list[_RatedLine] = []
    for message in said:
        for sentence in summary_sentences(message)[:_MOST_SENTENCES]:
            folded = fold(sentence)
            if folded and folded not in known:
                known.add(folded)
                text = _SAID + cut_at_word(sentence, _MOST_LINE_CHARACTERS)
                added.append(_RatedLine(text, len(carried) + len(added), _weight(sentence)))
    budget = tokens * CHARACTERS_PER_TOKEN
    kept = _fitting(carried, budget // 2)
    kept += _fitting(added, budget - _cost(kept))
    kept += _fitting([line for line in carried if line not in kept], budget - _cost(kept))
    return "\n".join(line.text for line in sorted(kept, key=lambda line: line.place))


def _lines(old: str) -> list[str]:
    """Split an old summary into lines: those of an extract, or the sentences of another author's summary."""
    found: list[str] = []
    for line in old.splitlines():
        found += [line] if line.startswith(_SAID) else summary_sentences(line)
    return [cut_at_word(line, _MOST_LINE_CHARACTERS) for line in found]


def _fitting(lines: Sequence[_RatedLine], budget: int) -> list[_RatedLine]:
    """Return the most telling lines that fit into `budget` characters, of equals the later first; none of weight 0."""
    kept: list[_RatedLine] = []
    for line in sorted(lines, key=lambda line: (-line.weight, -line.place)):
        if line.weight and _cost([line]) <= budget:
            kept.append(line)
            budget -= _cost([line])
    return kept


def _cost(lines: Sequence[_RatedLine]) -> int:
    """Count the characters of the lines, each with its line break."""
    return sum(len(line.text) + 1 for line in lines)


def _weight(sentence: str) -> int:
    """Rate a sentence: 0 for small talk, 1 for a question, more for the user's own matters, numbers and names."""
    text = sentence.removeprefix(_SAID)
    said = text.casefold().replace("\u2019", "'").split()
    bare = {word.strip('.,;:!?()"') for word in said}
    personal = bool(bare & _FIRST_PERSON or _FIRST_PERSON_SIGNS.search(text))
    names = any(name[0].isupper() for name in _NAME.findall(text))
    more = 2 * personal + names + any(char.isdigit() for char in text) + bool(bare & _DECIDES)
    if not more and len(said) < _SHORT and not (_UNSPACED.search(text) and len(text) > _SHORT_UNSPACED):
        return 0
    return 1 if asks(text.rstrip(CLOSING_MARKS + " ")) else 2 + more
