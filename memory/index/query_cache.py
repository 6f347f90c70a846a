"""Caches the vectors of queries, so that a search text is embedded once, also where it is a message to index."""

import asyncio
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from typing_extensions import override

from recollect.memory.ports.embedder import Embedder, ForwardingEmbedder

MOST_KEPT = 512
LONGEST_KEPT = 8_000
"""The most characters of a cached text: longer ones are pasted rather than typed, and hardly ever searched again."""

_Key = bytes


@dataclass(slots=True)
class _RunningCall:
    """A running call for a vector, and how many wait for it."""

    task: "asyncio.Task[array[float]]"
    waiting: int = 0


class CachedEmbedder(ForwardingEmbedder):
    """An embedder that caches the vectors of the last `most` queries, by model and text.

    It keeps digests in place of texts, and of vectors at most `most` times the dimension times 8 bytes: 6 MiB for 512
    of 1,536 dimensions. A cached vector equals the original to the last bit. Equal queries at the same time share one
    call, which is cancelled when nobody waits for it any more; a failure is raised to all who wait, and is not cached.
    Documents are not cached, because a text is indexed once; a message that was searched for takes its query's vector
    where the embedder embeds queries and documents alike.
    """

    def __init__(self, embedder: Embedder, *, most: int = MOST_KEPT) -> None:
        super().__init__(embedder)
        self._most = most
        self._kept: OrderedDict[_Key, array[float]] = OrderedDict()
        self._asked: dict[_Key, _RunningCall] = {}

    def clear(self) -> None:
        """Drop all cached vectors."""
        self._kept.clear()

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a search text, cached or from the embedder.

        Raises:
            ModelUnavailable: the embedder cannot serve; the next call asks it again.
        """
        if len(text) > LONGEST_KEPT:
            return await super().embed_query(text)
        key = _key(self.model, text)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept.tolist()
        return (await self._shared(key, text)).tolist()

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return the texts' vectors: cached ones of queries where they are the same, the others in one call.

        Raises:
            ModelUnavailable: the embedder cannot serve; nothing of the call is kept.
        """
        if not self.embeds_alike:
            return await super().embed_documents(texts)
        known = {text: kept.tolist() for text in texts if (kept := self._kept.get(_key(self.model, text))) is not None}
        missing = [text for text in texts if text not in known]
        found = iter(await super().embed_documents(missing) if missing else ())
        return [known[text] if text in known else next(found) for text in texts]

    async def _shared(self, key: _Key, text: str) -> "array[float]":
        asked = self._asked.get(key)
        if asked is None or asked.task.done():
            asked = self._asked[key] = _RunningCall(asyncio.create_task(self._embed(key, text), name="embed-query"))
        asked.waiting += 1
        try:
            return await asyncio.shield(asked.task)  # a waiter that is cancelled must not cancel the shared call
        finally:
            asked.waiting -= 1
            if asked.waiting == 0:
                asked.task.cancel()
                if self._asked.get(key) is asked:
                    del self._asked[key]

    async def _embed(self, key: _Key, text: str) -> "array[float]":
        vector = array("d", await super().embed_query(text))
        self._kept[key] = vector
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return vector


def _key(model: str, text: str) -> _Key:
    """Return a digest in place of the text, which is the user's own and may be long."""
    return blake2b(f"{model}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
