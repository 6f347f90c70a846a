"""The built-in embedder: words and their character n-grams, hashed into a vector. No model, no download, no state.

Feature hashing with signs (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009): each
feature adds +w or -w at a place that its hash names, so that collisions cancel out on average. It finds texts that
share words or parts of words; it knows no synonyms.
"""

import asyncio
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from math import log
from zlib import crc32

import numpy as np

DIMENSION = 1_024
MODEL = "lexical-v1"
INLINE_CHARACTERS = 4_000
"""Longer texts (in all) are embedded in a thread: at some 0.8 µs a character they would hold up the event loop."""

_NGRAMS = (3, 4)
"""Together they weigh as much as the word itself, so that its inflected forms stay alike ("paint", "painted")."""
_STOP_WEIGHT = 0.1
_LONGEST_WORD = 40

# Scripts written without spaces: Thai, Lao, Burmese, Khmer, kana, Han. Their "words" are the pairs of neighbours.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# Signs that belong to a word although \w leaves them out: combining marks, Hebrew, Arabic and Indic vowel signs.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
_WORD = re.compile(rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}_])[\w{_MARKS}]){{1,{_LONGEST_WORD}}}(?:[+#]{{1,2}}(?!\w))?")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]")

_STOP_TEXT = (
    # English, with what its contractions leave behind
    "a about am an and any are as at be been but by can could d did do does doing don for from had has have he her him "
    "his how i if in into is it its just ll m me my no not of on or our re s she so some t than that the their them "
    "then there these they this to too us ve was we were what when where which who whom whose why will with would you "
    "your yours "
    # German, French, Spanish, without what means something in English (die, war, son, los)
    "aber als am auf bei bin das dass dem den der des du ein eine einen er es für habe hat ich im ist kann mein "
    "meine mich mir mit nicht sein sie sind und von was wer wie wir wo zu "
    "au aux avec ce ces cette dans de des du elle en est et il ils je la le les leur ma mais mes mon nous où par pas "
    "pour qu que qui sa ses sont suis sur un une vous "
    "al como con cuál del donde dónde el ella eres es está estoy la las lo me mi mis muy para pero por qué quién se "
    "ser si soy su sus tu y yo "
    # The commonest pairs of Chinese and Japanese
    "什么 我的 你的 是的 了吗 です ます した ました という"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())


class LexicalEmbedder:
    """Embedder without a model: deterministic across processes and platforms, the same for queries and documents.

    Vectors have length 1, or 0 for a text without words.
    """

    @property
    def model(self) -> str:
        """Its name; a change of its rules needs a new one, because the collection is named after it."""
        return MODEL

    async def dimension(self) -> int:
        """1,024."""
        return DIMENSION

    async def embed_query(self, text: str) -> Sequence[float]:
        """The text's vector. Never fails."""
        return (await self.embed_documents([text]))[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """The texts' vectors, in their order. Never fails."""
        if sum(map(len, texts)) <= INLINE_CHARACTERS:
            return [embed(text) for text in texts]
        return await asyncio.to_thread(lambda: [embed(text) for text in texts])

    async def ping(self) -> None:
        """It is always there."""


def embed(text: str) -> list[float]:
    """The vector of a text: 1,024 numbers, of length 1 or 0."""
    hashes: list[int] = []
    weights: list[float] = []
    for word, count in Counter(words(text)).items():
        weight = (1.0 + log(count)) * (_STOP_WEIGHT if word in _STOP_WORDS else 1.0)
        hashes.append(crc32(b"w" + word.encode("utf-8", "surrogatepass")))
        weights.append(weight)
        parts = _ngrams(word)
        hashes += [crc32(part.encode("utf-8", "surrogatepass")) for part in parts]
        weights += [weight / max(1, len(parts)) ** 0.5] * len(parts)
    return _vector(hashes, weights)


def words(text: str) -> Iterator[str]:
    """The words of a text, folded (NFKC and case); pairs of characters where a script has no spaces."""
    for run in _WORD.findall(_folded(text)):
        if _UNSPACED_RUN.match(run):
            yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
        else:
            yield run


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _ngrams(word: str) -> list[str]:
    """3- and 4-grams of the word with its ends marked; none for numbers, whose parts mean nothing."""
    if len(word) < 3 or word.isdecimal():
        return []
    ended = f"<{word}>"
    return [ended[at : at + size] for size in _NGRAMS for at in range(len(ended) - size + 1)]


def _vector(hashes: list[int], weights: list[float]) -> list[float]:
    if not hashes:
        return [0.0] * DIMENSION
    mixed = np.array(hashes, dtype=np.uint64)
    # CRC-32 alone maps near texts to near hashes; this is the finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    signed = np.where(mixed >> np.uint64(63), -1.0, 1.0) * np.array(weights)
    vector = np.bincount((mixed % np.uint64(DIMENSION)).astype(np.int64), weights=signed, minlength=DIMENSION)
    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).tolist()
