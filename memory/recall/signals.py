"""The weights of a ranking's signals, by the kind of conversation and of embedder."""

from collections.abc import Sequence
from dataclasses import fields, replace

from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.values.frozen import frozen


@frozen
class Signals:
    """The weight of each signal, 0 or more. Channels are scaled to [0, 1] and summed; the other signals add to the sum.

    The defaults fit people talking with each other, measured with an embedder that knows meaning. The figure after each
    weight is what LoCoMo loses without it, in points of 88.0: the mean of recall at 5, 10, 25 and in 1,000 tokens.
    """

    dense: float = 0.25
    """The cosine of the text itself (0.3; 0.8 at 10)."""
    context: float = 0.25
    """The cosine of the text together with the message before it (0.3; 0.7 at 10)."""
    bm25: float = 0.4
    """The words of the text, and with less weight those of the messages before it (7.7)."""
    echo: float = 0.0
    """The share, in [0, 1], of an assistant message's BM25 that is multiplied by its own cosine scaled to [0, 1].

    Its BM25 includes the words of the question that it answers.
    """
    fact: float = 0.25
    """The cosine of the nearest fact that was learned from the message (1.4)."""
    speaker: float = 0.2
    """Added where the message is by the speaker whom the query asks about (1.3)."""
    date: float = 0.45
    """Added where the message was said in the time that the query names; half of it in the week after (1.4)."""
    thread: float = 0.6
    """Multiplies the mean of the three best scores of the message's thread (0.7)."""
    thread_for_several: float = 0.25
    """Replaces `thread` where the query asks for several things, which lie in several threads.

    (0.1; 1.1 of multi-hop at 10.)
    """
    user: float = 0.0
    """Added to the user's own messages, unless the query asks for what the assistant said, or about another speaker.

    0 between people.
    """
    question: float = 0.15
    """Subtracted where the message ends with a question (0.6)."""
    answer: float = 0.1
    """Multiplies the score of the message before it, where that ends with a question (0.1; 0.2 at 5)."""
    time_words: float = 0.15
    """Added where the message names a time and the query asks when (0.1; 0.3 at 5)."""
    length: float = 0.12
    """Favours longer messages: grows with ln(1 + characters), up to 300 of them (0.2)."""

    def scaled(self) -> "Signals":
        """Scale the weights so that the best match in every channel, in a thread of such messages, scores 1.

        `thread`, `thread_for_several` and `answer` multiply scores, and stay as they are.
        """
        full = (self.dense + self.context + self.bm25) * (1 + self.thread)
        shares = {"thread", "thread_for_several", "answer"}
        weights = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in shares}
        return replace(self, **{name: weight / full for name, weight in weights.items()})


PEOPLE = Signals()
ASSISTANT = Signals(
    dense=0.35,
    context=0.28,
    bm25=0.27,
    thread=0.4,
    user=0.2,
    echo=0.8,
    speaker=0.2,
    question=0.0,
    answer=0.0,
    length=0.0,
)
"""Weights for a person talking with an assistant, whose long answers would win by their length alone.

On another corpus of such chats a dense share of 0.7, a thread prior of 0.4 and 0.2 for user messages do better than
PEOPLE, and ranking questions lower costs 4 points at 5. The index gives an answer its question's words already. On 144
questions over made-up chats (one speaker's side of two LoCoMo talks, long answers from templates) these weights reach
69.9 and 79.9 at 5 and 10, PEOPLE 62.4 and 73.6.
"""
PEOPLE_BY_WORDS = Signals(
    dense=0.1,
    context=0.0,
    bm25=0.7,
    speaker=0.25,
    date=0.5,
    thread=0.5,
    time_words=0.2,
    length=0.25,
)
"""Weights for people with an embedder that knows words alone: 74 / 81 / 88 at 5, 10 and 25.

Such an embedder's cosine adds next to nothing to BM25.
"""
ASSISTANT_BY_WORDS = replace(ASSISTANT, dense=0.4, context=0.0, bm25=0.5)
"""Weights for an assistant with an embedder that knows words alone. Not measured.

Its cosine was seen to do better than BM25 on long answers.
"""


def signals_for(candidates: Sequence[Candidate], *, knows_meaning: bool) -> Signals:
    """Choose the weights: those for people where at least half of the messages carry a name, and two names occur."""
    named = [one.entry.name for one in candidates if one.entry.kind == "episode"]
    names = [name for name in named if name]
    if len(set(names)) >= 2 and 2 * len(names) >= len(named):
        return PEOPLE if knows_meaning else PEOPLE_BY_WORDS
    return ASSISTANT if knows_meaning else ASSISTANT_BY_WORDS
