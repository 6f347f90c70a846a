"""Query vectors that were asked for before: the same search text is not embedded twice."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from memory.embedder import Embedder

MOST_KEPT = 512
LONGEST_KEPT = 8_000
"""Characters; longer texts are pasted rather than typed, and hardly ever asked for again."""

_Key = bytes


@dataclass(slots=True)
class _Asked:
    """A vector on its way, and how many wait for it."""

    task: "asyncio.Task[array[float]]"
    waiting: int = 0


class CachedEmbedder:
    """An embedder that remembers the vectors of the last `most` queries, by model and text.

    It keeps digests in place of texts, and of vectors at most `most` times the dimension times 8 bytes: 6 MiB for 512
    of 1,536 dimensions. Vectors come back equal to the last bit. Equal queries at the same time share one call, which
    ends when nobody waits for it any more; a failure goes to all who wait, and is not kept. Documents pass through.
    """

    def __init__(self, embedder: Embedder, *, most: int = MOST_KEPT) -> None:
        self._embedder = embedder
        self._most = most
        self._kept: OrderedDict[_Key, array[float]] = OrderedDict()
        self._asked: dict[_Key, _Asked] = {}

    @property
    def model(self) -> str:
        """The embedder's own."""
        return self._embedder.model

    @property
    def knows_meaning(self) -> bool:
        """The embedder's own."""
        return self._embedder.knows_meaning

    async def dimension(self) -> int:
        """The embedder's own."""
        return await self._embedder.dimension()

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Not kept: a text is indexed once."""
        return await self._embedder.embed_documents(texts)

    def clear(self) -> None:
        """Forget all vectors."""
        self._kept.clear()

    async def ping(self) -> None:
        """Ask the embedder."""
        await self._embedder.ping()

    async def embed_query(self, text: str) -> Sequence[float]:
        """The vector of a search text, remembered or asked for.

        Raises:
            ModelUnavailable: the embedder cannot serve; the next call asks it again.
        """
        if len(text) > LONGEST_KEPT:
            return await self._embedder.embed_query(text)
        key = _key(self._embedder.model, text)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept.tolist()
        return (await self._shared(key, text)).tolist()

    async def _shared(self, key: _Key, text: str) -> "array[float]":
        asked = self._asked.get(key)
        if asked is None or asked.task.done():
            asked = self._asked[key] = _Asked(asyncio.create_task(self._embed(key, text), name="embed-query"))
        asked.waiting += 1
        try:
            return await asyncio.shield(asked.task)  # whoever leaves takes nothing from the others
        finally:
            asked.waiting -= 1
            if asked.waiting == 0:
                asked.task.cancel()
                if self._asked.get(key) is asked:
                    del self._asked[key]

    async def _embed(self, key: _Key, text: str) -> "array[float]":
        vector = array("d", await self._embedder.embed_query(text))
        self._kept[key] = vector
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return vector


def _key(model: str, text: str) -> _Key:
    """A digest: texts are the user's, and may be long."""
    return blake2b(f"{model}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
