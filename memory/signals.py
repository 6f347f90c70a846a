"""Signals: what counts in a ranking, and how much, by the kind of conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from memory.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Signals:
    """The weight of each signal, 0 or more. Channels are brought to [0, 1] first; the others add to their sum.

    The defaults are those for people talking with each other, found over an embedder that knows meaning. After each
    stands what LoCoMo loses without it, in points: the mean of recall at 5, 10, 25 and in 1,000 tokens, of 88.0.
    """

    dense: float = 0.25
    """The text's own cosine (0.3; 0.8 at 10)."""
    context: float = 0.25
    """The cosine of the text behind the message before it (0.3; 0.7 at 10)."""
    bm25: float = 0.4
    """Its words, and at less weight those of the messages before it (7.7)."""
    echo: float = 0.0
    """This share of BM25 an assistant's message has only as far as its own cosine goes: it has its question's words."""
    fact: float = 0.25
    """The cosine of the nearest fact that it taught (1.4)."""
    speaker: float = 0.2
    """It is said by the one whom the query asks about (1.3)."""
    date: float = 0.45
    """It is said in the time that the query names, or half of it in the week after (1.4)."""
    thread: float = 0.6
    """The mean of the three best scores of its thread (0.7)."""
    thread_for_several: float = 0.25
    """The same where the query asks for several things, which lie in several threads (0.1; 1.1 of multi-hop at 10)."""
    user: float = 0.0
    """It is the user's own message, and the query does not ask for what the assistant said. Not between people."""
    question: float = 0.15
    """It ends with a question: taken off (0.6)."""
    answer: float = 0.1
    """This share of the score of the message before it, where that ends with a question (0.1; 0.2 at 5)."""
    time_words: float = 0.15
    """It names a time, and the query asks when (0.1; 0.3 at 5)."""
    length: float = 0.12
    """It is long enough to say something: ln(1 + characters), up to 300 of them (0.2)."""

    def scaled(self) -> "Signals":
        """The same in other units: the best match in every channel, in a thread of such, then scores 1 without signals.

        `thread` and `answer` are shares of scores, and stay.
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
"""A person talking with an assistant: the user's questions are what is looked for, and long answers win by themselves.

Seen on another corpus of such chats: a dense share of 0.7, a thread prior of 0.4 and 0.2 for user messages do better
there, and ranking questions lower costs 4 points at 5. An answer has its question's words from the index already. On
144 questions over made-up chats (one speaker's side of two LoCoMo talks, long answers from templates) it comes to 69.9
and 79.9 at 5 and 10, PEOPLE to 62.4 and 73.6.
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
"""People, over an embedder that knows words alone: 74 / 81 / 88 at 5, 10 and 25. Its cosine adds next to nothing."""
ASSISTANT_BY_WORDS = Signals(
    dense=0.4,
    context=0.0,
    bm25=0.5,
    thread=0.4,
    user=0.2,
    echo=0.8,
    speaker=0.2,
    question=0.0,
    answer=0.0,
    length=0.0,
)
"""An assistant, over an embedder that knows words alone, whose cosine was seen to do better than BM25 on long answers.

Not measured.
"""


def signals_for(candidates: Sequence[Candidate], *, knows_meaning: bool) -> Signals:
    """The signals that fit: people where at least half of the messages are named, and by two names or more."""
    named = [one.entry.name for one in candidates if one.entry.kind == "episode"]
    names = [name for name in named if name]
    if len(set(names)) >= 2 and 2 * len(names) >= len(named):
        return PEOPLE if knows_meaning else PEOPLE_BY_WORDS
    return ASSISTANT if knows_meaning else ASSISTANT_BY_WORDS
