"""Prepares a search text: finds what it asks for, and which speaker it asks about. Pure."""

import re
from collections.abc import Sequence

from recollect.memory.index.bm25 import stems, weights_of
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.language.lexemes import STOP_WORDS
from recollect.memory.ports.vector_index import SparseVector
from recollect.memory.temporal.dates import says_time
from recollect.memory.values.frozen import frozen
from recollect.memory.values.period import Period

SHORTEST_NICKNAME = 3
"""The fewest letters of a nickname: "Mel" may be Melanie, "Al" may be anything."""

_WHEN = late_pattern(
    r"\W*(?:when|since when|how long|(?:in |on )?(?:what|which) (?:year|month|date|day|time)|wann|seit wann|wie lange"
    r"|quand|depuis quand|cuándo|desde cuándo|quando|da quando)\b",
    re.IGNORECASE,
)
_SEVERAL = late_pattern(
    r"\W*(?:what|which) (?:\w+ )?(?:\w+ )?(?!(?:does|this|always|besides)\b)\w{2,}[^\Wsu]s\b"
    r"|\W*(?:what|which) (?:kind|type|sort)s? of\b|\W*how many\b|.*\b(?:both|in common)\b",
    re.IGNORECASE,
)
"""Matches questions for several things, in English: "what books", "how many", "both".

In other languages a plural is harder to tell from its form.
"""
_TO_YOU = late_pattern(r"\b(?:you|your|du|dir|dein\w*|tu|toi|vous|votre|tú|usted|lei)\b", re.IGNORECASE)
_JOINED = late_pattern(r"\b(?:and|or|both|und|oder|et|ou|y|o|e)\b|[&,]", re.IGNORECASE)
_AUXILIARY = late_pattern(r"\b(?:did|does|do|is|was|has|have|had|would|will|can)\s+$", re.IGNORECASE)
_OWNED = late_pattern(r"['\u2019]s?(?!\w)")
_MOST_CHARACTERS = 2_000
"""How much of the text's beginning is searched for names and for what is asked."""


@frozen
class PreparedQuery:
    """A search text, taken apart.

    `dense_text` goes to the embedder, worded as speakers talk of themselves. `stems` are those of its words without
    names, `bm25` their weights. `period` is the time that the text names. `speaker` is the one speaker it asks about.
    `to_assistant`: it asks what the assistant itself said.
    """

    dense_text: str
    bm25: SparseVector
    stems: frozenset[str] = frozenset()
    period: Period | None = None
    speaker: str | None = None
    asks_when: bool = False
    asks_for_several: bool = False
    to_assistant: bool = False

    def relevance(self, passage: str) -> float:
        """Return the share of the query's words that `passage` has, in [0, 1]."""
        return len(self.stems.intersection(stems(passage))) / len(self.stems) if self.stems else 0.0


@frozen
class _Mention:
    name: str
    begin: int
    end: int
    owns: bool


def prepare_query(text: str, *, names: Sequence[str] = (), period: Period | None = None) -> PreparedQuery:
    """Take `text` apart. `names` are the speakers of the user's messages; `period` is the time that the text names.

    Speakers rarely name themselves: for the embedder a speaker's name becomes "I", and "Ada's" becomes "my" (recall of
    LoCoMo, mean of 5, 10, 25 and 1,000 tokens: 0.25 more than without the names); for BM25 they are taken out.
    """
    head, tail = text[:_MOST_CHARACTERS], text[_MOST_CHARACTERS:]
    mentions = _mentions(head, names)
    spoken = _replaced(head, mentions, name="I", owner="my") + tail
    nameless = _replaced(head, mentions, name="", owner="") + tail
    asked = stems(nameless)
    if not asked and mentions:  # it asks for nothing but names
        spoken = nameless = text
        asked = stems(text)
    return PreparedQuery(
        dense_text=spoken,
        bm25=weights_of(asked),
        stems=frozenset(asked),
        period=period,
        speaker=_speaker(head, mentions),
        asks_when=_WHEN.match(head) is not None,
        asks_for_several=_SEVERAL.match(nameless) is not None,
        to_assistant=_TO_YOU.search(head) is not None,
    )


def _mentions(text: str, names: Sequence[str]) -> list[_Mention]:
    """Find the places where `text` names speakers, in its order."""
    called = {form: name for name in names for form in _forms(name, names)}
    found = list[_Mention]()
    for form in sorted(called, key=len, reverse=True):
        for match in re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", text, re.IGNORECASE):
            if _is_name(match[0]) and all(match.end() <= one.begin or match.start() >= one.end for one in found):
                owned = _OWNED.match(text, match.end())
                end = owned.end() if owned else match.end()
                found.append(_Mention(called[form], match.start(), end, owned is not None))
    if names and not found:
        found = _nicknames(text, names)
    return sorted(found, key=lambda one: one.begin)


def _forms(name: str, names: Sequence[str]) -> list[str]:
    """Return the forms of a speaker's name: the whole name, and its first word where nobody else's begins with it."""
    parts = name.split()
    if len(parts) < 2 or len(parts[0]) < SHORTEST_NICKNAME:
        return [" ".join(parts)] if parts else []
    others = [other.split()[0].casefold() for other in names if other != name and other.split()]
    return [name] if parts[0].casefold() in others else [name, parts[0]]


def _is_name(word: str) -> bool:
    """Tell whether `word` is meant as a name, though it may be another word too ("will", "may")."""
    return word[0].isupper() or (word.casefold() not in STOP_WORDS and not says_time(word.capitalize()))


def _nicknames(text: str, names: Sequence[str]) -> list[_Mention]:
    """Find capitalised words that are the beginning of exactly one name."""
    found = list[_Mention]()
    for match in re.finditer(rf"(?<!\w)[^\W\d_]{{{SHORTEST_NICKNAME},}}(?!\w)", text):
        word = match[0]
        meant = [name for name in names if word[0].isupper() and name.startswith(word)]
        if len(meant) == 1 and word.casefold() not in STOP_WORDS:
            owned = _OWNED.match(text, match.end())
            end = owned.end() if owned else match.end()
            found.append(_Mention(meant[0], match.start(), end, owned is not None))
    return found


def _replaced(text: str, mentions: Sequence[_Mention], *, name: str, owner: str) -> str:
    for mention in reversed(mentions):
        text = text[: mention.begin] + (owner if mention.owns else name) + text[mention.end :]
    return " ".join(text.split()) if mentions else text


def _speaker(text: str, mentions: Sequence[_Mention]) -> str | None:
    """Return the speaker whom the text asks about: the only one named, or of two the one who acts.

    In "what did Ada say to Bob" that is Ada. None where two names are joined ("Ada and Bob"), or more are named.
    """
    named = dict.fromkeys(mention.name for mention in mentions)
    if len(named) == 1:
        return next(iter(named))
    if len(named) != 2:
        return None
    first = mentions[0]
    second = next(mention for mention in mentions if mention.name != first.name)
    if _JOINED.search(text[first.end : second.begin]):
        return None
    acts = first.owns and _AUXILIARY.search(text[: second.begin]) is not None
    return second.name if acts else first.name
