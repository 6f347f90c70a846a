"""Embeds texts without a model: words and their character n-grams are hashed into a vector; no download, no state.

Feature hashing with signs (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009): each
feature adds +w or -w at a place that its hash names, so that collisions cancel out on average. It finds texts that
share words or parts of words; it knows no synonyms.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log, sqrt
from zlib import crc32

from typing_extensions import override

from recollect.memory.background.bulk import Bulk
from recollect.memory.background.long_texts import INLINE_CHARACTERS, off_loop
from recollect.memory.language.lexemes import STOP_WORDS, words
from recollect.memory.ports.embedder import Embedder

DIMENSION = 1_024
MODEL = "lexical-v1"
_NGRAMS = (3, 4)
"""Together they weigh as much as the word itself, so that its inflected forms stay alike ("paint", "painted")."""
_STOP_WEIGHT = 0.1
_64_BITS = (1 << 64) - 1
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MOST_WORDS = 8_192
"""So many words keep their places, in some 4 MB: texts of a talk have most of their words in common."""


class LexicalEmbedder(Embedder):
    """Embedder without a model: deterministic across processes and platforms, the same for queries and documents.

    Vectors have length 1, or 0 for a text without words. Long texts are embedded as `bulk` work.
    """

    def __init__(self, bulk: Bulk | None = None) -> None:
        self._bulk = bulk or Bulk()

    @property
    @override
    def model(self) -> str:
        """Return the embedder's name; changed rules need a new one, because the collection is named after it."""
        return MODEL

    @property
    @override
    def knows_meaning(self) -> bool:
        """Return False: it knows only words and their parts."""
        return False

    @property
    @override
    def embeds_alike(self) -> bool:
        """Return True: it hashes every text by the same rules."""
        return True

    @override
    async def dimension(self) -> int:
        """Return 1,024."""
        return DIMENSION

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the text's vector. Never fails."""
        # Not in `bulk`: a search does not wait behind imports.
        return await off_loop(lambda: embed(text), [text])

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the texts' vectors, in their order. Never fails."""
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return [embed(text) for text in texts]
        return [*await self._bulk.each(embed, texts)]

    @override
    async def ping(self) -> None:
        """Return at once: there is nothing to reach."""


def embed(text: str) -> list[float]:
    """Return the vector of `text`: 1,024 numbers, of length 1, or 0 without words."""
    sums = dict[int, float]()
    for word, count in Counter(words(text)).items():
        weight = (1.0 + log(count)) * (_STOP_WEIGHT if word in STOP_WORDS else 1.0)
        whole, parts = _places(word)
        _add(sums, (whole,), weight)
        _add(sums, parts, weight / max(1, len(parts)) ** 0.5)
    length = sqrt(sum([number * number for number in sums.values()]))
    vector = [0.0] * DIMENSION
    if length:
        for place, number in sums.items():
            vector[place] = number / length
    return vector


def _add(sums: dict[int, float], places: Sequence[int], weight: float) -> None:
    for place in places:
        if place >= 0:
            sums[place] = sums.get(place, 0.0) + weight
        else:
            sums[~place] = sums.get(~place, 0.0) - weight


@lru_cache(maxsize=_MOST_WORDS)
def _places(word: str) -> tuple[int, tuple[int, ...]]:
    """Return the places of a word and of its parts, inverted (`~`) where the weight is subtracted."""
    whole = b"w" + word.encode("utf-8", "surrogatepass")
    return _place(crc32(whole)), tuple(_place(crc32(part)) for part in _ngrams(word))


def _place(hashed: int) -> int:
    # CRC-32 alone maps near texts to near hashes; this is the finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
    mixed = ((hashed ^ (hashed >> 30)) * _FACTORS[0]) & _64_BITS
    mixed = ((mixed ^ (mixed >> 27)) * _FACTORS[1]) & _64_BITS
    mixed ^= mixed >> 31
    place = mixed % DIMENSION
    return ~place if mixed >> 63 else place


def _ngrams(word: str) -> list[bytes]:
    """Return 3- and 4-grams of the word with its ends marked; none for numbers, whose parts mean nothing."""
    if len(word) < 3 or word.isdecimal():
        return []
    ended = f"<{word}>"
    if ended.isascii():  # one encoding, in place of one for each part
        encoded = ended.encode()
        return [encoded[at : at + size] for size in _NGRAMS for at in range(len(ended) - size + 1)]
    parts = (ended[at : at + size] for size in _NGRAMS for at in range(len(ended) - size + 1))
    return [part.encode("utf-8", "surrogatepass") for part in parts]
