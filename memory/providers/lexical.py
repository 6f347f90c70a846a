"""Embeds texts without a model: words and their character n-grams are hashed into a vector; no download, no state.

Feature hashing with signs (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009): each
feature adds +w or -w at a place that its hash names, so that collisions cancel out on average. It finds texts that
share words or parts of words; it knows no synonyms.
"""

from collections import Counter
from collections.abc import Sequence
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
_FEW = 2 * INLINE_CHARACTERS
"""So many features a text of fewer characters hardly has: what is embedded on the event loop never waits for NumPy."""


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
    hashes: list[int] = []
    weights: list[float] = []
    for word, count in Counter(words(text)).items():
        weight = (1.0 + log(count)) * (_STOP_WEIGHT if word in STOP_WORDS else 1.0)
        hashes.append(crc32(b"w" + word.encode("utf-8", "surrogatepass")))
        weights.append(weight)
        parts = _ngrams(word)
        hashes += map(crc32, parts)
        weights += [weight / max(1, len(parts)) ** 0.5] * len(parts)
    return _vector(hashes, weights)


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


def _vector(hashes: list[int], weights: list[float]) -> list[float]:
    """Return the vector of these features."""
    sums = _sums(hashes, weights) if len(hashes) <= _FEW else _sums_of_many(hashes, weights)
    length = sqrt(sum([number * number for number in sums.values()]))
    vector = [0.0] * DIMENSION
    if length:
        for place, number in sums.items():
            vector[place] = number / length
    return vector


def _sums(hashes: list[int], weights: list[float]) -> dict[int, float]:
    """Return the sums of the signed weights by their places."""
    sums = dict[int, float]()
    for hashed, weight in zip(hashes, weights, strict=True):
        # CRC-32 alone maps near texts to near hashes; this is the finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
        mixed = ((hashed ^ (hashed >> 30)) * _FACTORS[0]) & _64_BITS
        mixed = ((mixed ^ (mixed >> 27)) * _FACTORS[1]) & _64_BITS
        mixed ^= mixed >> 31
        place = mixed % DIMENSION
        sums[place] = sums.get(place, 0.0) + (-weight if mixed >> 63 else weight)
    return sums


def _sums_of_many(hashes: list[int], weights: list[float]) -> dict[int, float]:
    """Return what `_sums` returns, in half its time for a long text.

    NumPy is imported for it alone: it takes 0.05 s, and 12 MiB that a service without long texts does not need.
    """
    import numpy as np

    mixed = np.array(hashes, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FACTORS[0])
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_FACTORS[1])
    mixed ^= mixed >> np.uint64(31)
    signed = np.where(mixed >> np.uint64(63), -1.0, 1.0) * np.array(weights)
    summed = np.bincount((mixed % np.uint64(DIMENSION)).astype(np.int64), weights=signed, minlength=DIMENSION)
    return {place: float(number) for place, number in enumerate(summed)}
