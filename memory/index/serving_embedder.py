"""The embedder that serves now, whichever that is; its vectors name the side that made them."""

from collections.abc import Iterable, Sequence

from typing_extensions import override

from recollect.memory.index.sides import EmbedderSides, Side
from recollect.memory.ports.embedder import Embedder


class SideVector(list[float]):
    """A vector with the side that made it, so that it is compared with that side's points alone."""

    __slots__ = ("side",)

    def __init__(self, numbers: Iterable[float], side: Side) -> None:
        super().__init__(numbers)
        self.side = side


class ServingEmbedder(Embedder):
    """Forwards each call to the embedder of the side that serves when the call begins."""

    def __init__(self, sides: EmbedderSides) -> None:
        self._sides = sides

    @property
    @override
    def model(self) -> str:
        return self._sides.serving.embedder.model

    @property
    @override
    def knows_meaning(self) -> bool:
        return self._sides.serving.embedder.knows_meaning

    @property
    @override
    def embeds_alike(self) -> bool:
        return self._sides.serving.embedder.embeds_alike

    async def steady(self) -> Embedder:
        """Return the embedder of the side that serves now, for work that no switch may split."""
        return (await self._sides.settled()).embedder

    def clear(self) -> None:
        """Drop the cached vectors of all sides."""
        for side in self._sides.all:
            side.embedder.clear()

    @override
    async def dimension(self) -> int:
        return await (await self._sides.settled()).embedder.dimension()

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        side = await self._sides.settled()
        return SideVector(await side.embedder.embed_query(text), side)

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        side = await self._sides.settled()
        return [SideVector(vector, side) for vector in await side.embedder.embed_documents(texts)]

    @override
    async def ping(self) -> None:
        await self._sides.serving.embedder.ping()


async def steady(embedder: Embedder) -> Embedder:
    """Return the embedder that serves now in place of one that forwards; any other as it is."""
    return await embedder.steady() if isinstance(embedder, ServingEmbedder) else embedder
