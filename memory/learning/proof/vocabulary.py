"""Vocabulary: finds a claim's word in a quoted text, also in another form, script or language. Pure."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import Stemmer

from recollect.memory.language.folding import nfkd
from recollect.memory.language.late_pattern import late_pattern
from recollect.memory.learning.proof.latin import latin, sounds
from recollect.memory.learning.proof.places import FAMILIES

_LANGUAGES = (
    *("english", "german", "french", "spanish", "italian", "portuguese", "dutch", "russian", "polish", "swedish"),
    *("finnish", "turkish"),
)
WORD = late_pattern(r"[^\W_]+")
CASELESS = late_pattern(
    "[\u0590-\u07ff\u0900-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+"
)
"""Runs of scripts without capitals."""
_LEAST_PREFIX, _SHARE = 4, 0.6
_LEAST_ROOT = 4


class Vocabulary:
    """Holds the words of a folded text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = frozenset(WORD.findall(text))

    def has(self, word: str) -> bool:
        """Tell whether the text holds `word` or a form of it: "works" has "work", "allergic" has "allergy"."""
        return self.has_name(word) or any(_share_root(word, other) for other in self.words)

    def has_name(self, name: str) -> bool:
        """Tell whether the text holds `name`, also inflected, without accents, in Latin letters, or translated."""
        if name in self.words or name in self._plain or without_marks(name) in self._plain:
            return True
        if self._has_stem(name) or self.has_place(name):
            return True
        return name.isascii() and self._sounds_like(name)

    def has_place(self, name: str) -> bool:
        """Tell whether the text names the place in any language that the list of places has."""
        return any(self.has_text(other) for other in FAMILIES.get(name, ()))

    def has_text(self, text: str) -> bool:
        """Tell whether the text holds these words in a row; in a script without spaces, these characters."""
        if text not in self.text:
            return False
        if CASELESS.search(text):
            return True
        return all(word in self.words for word in WORD.findall(text))

    def shares_signs(self, run: str) -> bool:
        """Tell whether the text has two neighbouring characters of `run`, or its only one."""
        return any(pair in self.text for pair in pairs_of(run))

    @cached_property
    def _plain(self) -> frozenset[str]:
        return frozenset(map(without_marks, self.words))

    @cached_property
    def _stems(self) -> Sequence[tuple["_Stemmer", frozenset[str]]]:
        every = list(self.words)
        return [(stemmer, frozenset(stemmer.stemWords(every))) for stemmer in map(_stemmer, _LANGUAGES)]

    def _has_stem(self, word: str) -> bool:
        return any(stemmer.stemWord(word) in stems for stemmer, stems in self._stems)

    @cached_property
    def _latin(self) -> frozenset[str]:
        if self.text.isascii():
            return frozenset()
        return frozenset(sounds(latin(word)) for word in self.words if not word.isascii())

    def _sounds_like(self, name: str) -> bool:
        """Tell whether a word of another script is `name` in Latin letters, apart from its ending."""
        sound = sounds(name)
        if sound in self._latin:
            return True
        root = sound.rstrip("aeiouy")
        return len(root) >= _LEAST_ROOT - 1 and any(
            other.startswith(root) and len(other) <= len(sound) + 2 for other in self._latin
        )


class _Stemmer(Protocol):
    """Types PyStemmer's stemmer, which has no types of its own. Threads must not share one."""

    def stemWord(self, word: str, /) -> str:  # noqa: N802 - its name
        """Return the word's stem."""
        ...

    def stemWords(self, words: list[str], /) -> list[str]:  # noqa: N802 - its name
        """Return the words' stems."""
        ...


def _stemmer(language: str) -> _Stemmer:
    made: _Stemmer = Stemmer.Stemmer(language, 0)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # no types
    return made  # pyright: ignore[reportUnknownVariableType]  # no types


def pairs_of(run: str) -> Iterator[str]:
    """Yield the pairs of neighbouring characters in `run`, or its only character."""
    yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))


def without_marks(word: str) -> str:
    """Remove accents and other combining marks from `word`."""
    if word.isascii():
        return word
    return "".join(char for char in nfkd(word) if not unicodedata.combining(char))


def contents(text: str, empty: Iterable[str]) -> list[str]:
    """Return the words of a folded text that are not in `empty`; of a script without spaces, pairs of neighbours."""
    left_out = set(empty)
    found = list[str]()
    for word in WORD.findall(text):
        if CASELESS.fullmatch(word):
            found += pairs_of(word)
        elif word not in left_out:
            found.append(word)
    return found


def _share_root(word: str, other: str) -> bool:
    most = min(len(word), len(other))
    if most < _LEAST_PREFIX or word[:_LEAST_PREFIX] != other[:_LEAST_PREFIX]:
        return False
    shared = next((at for at in range(most) if word[at] != other[at]), most)
    return shared >= _SHARE * max(len(word), len(other))
