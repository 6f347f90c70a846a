"""Makes an embedder of a program's own object: LangChain's `Embeddings`, one with `encode`, or the port itself."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable
from recollect.memory.values.given import GivenEmbeddings

_OUTAGES = (ConnectionError, TimeoutError, OSError)


class GivenEmbedder(Embedder):
    """Asks the object, in a thread where it has no async methods. Vectors get length 1.

    A call takes at most `timeout_seconds`. The vectors of one object have one length.
    """

    def __init__(self, given: GivenEmbeddings, *, timeout_seconds: float) -> None:
        self._model = given.name
        self._object: Any = given.given
        self._is_port = given.is_port
        self._timeout = timeout_seconds
        self._dimension: int | None = None

    @property
    @override
    def model(self) -> str:
        return self._model

    @property
    @override
    def knows_meaning(self) -> bool:
        return bool(getattr(self._object, "knows_meaning", True)) if self._is_port else True

    @property
    @override
    def embeds_alike(self) -> bool:
        return bool(getattr(self._object, "embeds_alike", False)) if self._is_port else False

    @override
    async def dimension(self) -> int:
        if self._dimension is None:
            await self.embed_documents(["dimension"])
        assert self._dimension is not None
        return self._dimension

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        if self._is_port:
            found = await self._asked(self._object.embed_query, text)
        elif hasattr(self._object, "aembed_query"):
            found = await self._asked(self._object.aembed_query, text)
        elif hasattr(self._object, "embed_query"):
            found = await self._asked(_in_thread(self._object.embed_query), text)
        else:
            return (await self.embed_documents([text]))[0]
        return self._checked([found], 1)[0]

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        if self._is_port:
            call = self._object.embed_documents
        elif hasattr(self._object, "aembed_documents"):
            call = self._object.aembed_documents
        else:
            name = "embed_documents" if hasattr(self._object, "embed_documents") else "encode"
            call = _in_thread(getattr(self._object, name))
        return self._checked(await self._asked(call, list(texts)), len(texts))

    @override
    async def ping(self) -> None:
        if self._is_port:
            await self._asked(self._object.ping)
        else:
            await self.embed_query("ping")

    async def _asked(self, call: Callable[..., Awaitable[Any]], *given: object) -> Any:
        try:
            async with asyncio.timeout(self._timeout):
                return await call(*given)
        except ModelUnavailable:
            raise
        except TimeoutError:
            raise ModelTimeout("The given embedder did not answer within EMBEDDING_TIMEOUT_SECONDS.") from None
        except Exception as error:
            # Catch everything: the object is not our code, and its error may quote the text.
            message = f"The given embedder failed ({type(error).__name__})."
            raise ModelUnavailable(message, outage=isinstance(error, _OUTAGES)) from error

    def _checked(self, found: Any, count: int) -> list[Sequence[float]]:
        """Return the vectors with length 1.

        Raises:
            ModelUnavailable: they are not `count` vectors of finite numbers, of the length that all others have.
        """
        try:
            vectors = [_unit(vector) for vector in found]
        except (TypeError, ValueError, OverflowError):
            vectors = []
        lengths = {len(vector) for vector in vectors}
        if len(vectors) != count or lengths - {self._dimension or max(lengths, default=0)} or lengths == {0}:
            raise ModelUnavailable("The given embedder's answer holds no usable vectors.", outage=False)
        self._dimension = self._dimension or max(lengths, default=None)
        return vectors


def _in_thread(call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    return lambda *arguments: asyncio.to_thread(call, *arguments)


def _unit(vector: Iterable[float]) -> Sequence[float]:
    numbers = [float(number) for number in vector]
    length = math.sqrt(sum(number * number for number in numbers))
    if not math.isfinite(length):
        raise ValueError(length)
    return [number / length for number in numbers] if length else numbers
