"""Makes an embedder of a program's own object: LangChain's `Embeddings`, or one with `encode`."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.given import GivenEmbeddings

_OUTAGES = (ConnectionError, TimeoutError, OSError)


class GivenEmbedder(Embedder):
    """Asks the object, in a thread where it has no async methods. Vectors get length 1."""

    def __init__(self, given: GivenEmbeddings) -> None:
        self._model = given.name
        self._object: Any = given.embeddings
        self._dimension: int | None = None

    @property
    @override
    def model(self) -> str:
        return self._model

    @property
    @override
    def knows_meaning(self) -> bool:
        return True

    @override
    async def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = len(await self.embed_query("dimension"))
        return self._dimension

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        if hasattr(self._object, "aembed_query"):
            return _unit(await _asked(self._object.aembed_query, text))
        if hasattr(self._object, "embed_query"):
            return _unit(await _asked(_in_thread(self._object.embed_query), text))
        return (await self.embed_documents([text]))[0]

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        if hasattr(self._object, "aembed_documents"):
            found = await _asked(self._object.aembed_documents, list(texts))
        else:
            name = "embed_documents" if hasattr(self._object, "embed_documents") else "encode"
            found = await _asked(_in_thread(getattr(self._object, name)), list(texts))
        return [_unit(vector) for vector in found]

    @override
    async def ping(self) -> None:
        await self.embed_query("ping")


def _in_thread(call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    return lambda *arguments: asyncio.to_thread(call, *arguments)


async def _asked(call: Callable[..., Awaitable[Any]], given: object) -> Any:
    try:
        return await call(given)
    except Exception as error:
        # Catch everything: the object is not our code, and its error may quote the text.
        kind = type(error).__name__
        message = f"The embeddings that MemoryConfig was given failed ({kind})."
        raise ModelUnavailable(message, outage=isinstance(error, _OUTAGES)) from error


def _unit(vector: Iterable[float]) -> list[float]:
    numbers = [float(number) for number in vector]
    length = math.sqrt(sum(number * number for number in numbers))
    return [number / length for number in numbers] if length else numbers
