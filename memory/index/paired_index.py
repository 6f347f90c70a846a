"""The index of the embedder that serves; while another one is prepared, each write is owed to both collections."""

import logging
from collections.abc import Sequence

from typing_extensions import override

from recollect.memory.index.indexing import make_points, preceding_texts
from recollect.memory.index.serving_embedder import SideVector
from recollect.memory.index.sides import EmbedderSides, Side
from recollect.memory.ports.forwarding_index import ForwardingIndex
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.vector_index import (
    Entry,
    Match,
    Point,
    Query,
    VectorIndex,
    index_fingerprint,
    indexed_message,
)
from recollect.memory.values.errors import RecollectError, is_outage
from recollect.memory.values.scope import Scope

logger = logging.getLogger(__name__)


class PairedIndex(ForwardingIndex):
    """Reads from the side that serves, and writes to it and to the prepared one; deletions reach every open side.

    A vector is compared with the points of the side that made it, so that a search in which the embedder is switched
    compares no vectors of two models.
    """

    def __init__(self, sides: EmbedderSides, timeline: Timeline, *, name: str) -> None:
        self.name = name
        self._sides = sides
        self._timeline = timeline

    @override
    async def _opened(self) -> VectorIndex:
        return (await self._sides.settled()).index

    @override
    async def search(self, query: Query) -> list[Match]:
        return await (await self._asked([query])).search(query)

    @override
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        return await (await self._asked(queries)).rank(queries)

    @override
    async def upsert(self, points: Sequence[Point]) -> None:
        """Store the points in the collection that serves, then in the prepared one.

        An outage of the prepared embedder is raised: the points stay owed to both. A text that it refuses is left to
        its next filling, so that it holds up nothing.
        """
        serving = await self._sides.settled()
        await serving.index.upsert(await self._made_for(serving, points))
        other = self._sides.other
        if other is None:
            return
        try:
            await other.index.upsert(await self._made_for(other, points))
        except (RecollectError, ValueError) as error:
            # Closed meanwhile, because it was dropped: then nothing is owed to it any more.
            if is_outage(error) and other in self._sides.all:
                raise
            logger.warning(
                "the prepared embedder missed points",
                extra={"action": "embedder_missed", "error": type(error).__name__},
            )

    @override
    async def retouch(self, entries: Sequence[Entry]) -> int:
        await self._opened()
        return sum([await side.index.retouch(entries) for side in self._sides.all])

    @override
    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        await self._opened()
        for side in self._sides.all:
            await side.index.remove(user_id=user_id, ids=ids)

    @override
    async def delete(self, scope: Scope) -> int:
        await self._opened()
        return sum([await side.index.delete(scope) for side in self._sides.all])

    @override
    async def other_collections(self) -> list[str]:
        found = await (await self._opened()).other_collections()
        own = {(await side.named()).collection for side in self._sides.all}
        return [name for name in found if name not in own]

    @override
    async def erase(self, scope: Scope) -> int:
        await self._opened()
        return sum([await side.index.erase(scope) for side in self._sides.all])

    @override
    async def remaining(self, scope: Scope) -> int:
        await self._opened()
        return sum([await side.index.remaining(scope) for side in self._sides.all])

    @override
    async def rewrite(self) -> None:
        await self._opened()
        for side in self._sides.all:
            await side.index.rewrite()

    @override
    async def vacuum(self, seconds: float) -> bool:
        await self._opened()
        return any([await side.index.vacuum(seconds) for side in self._sides.all])

    @override
    async def ping(self) -> None:
        await self._sides.serving.index.ping()  # though the store, which names the side, may be down

    async def _asked(self, queries: Sequence[Query]) -> VectorIndex:
        """Return the index with whose points the vectors of `queries` can be compared."""
        made = next((query.vector.side for query in queries if isinstance(query.vector, SideVector)), None)
        return made.index if made is not None else await self._opened()

    async def _made_for(self, side: Side, points: Sequence[Point]) -> Sequence[Point]:
        """Return the points as the side's embedder makes them; those of another embedder are made again."""
        if len(self._sides.all) == 1 and self._sides.choice is None:
            return points  # there never was another embedder
        model, dimension = side.embedder.model, await side.embedder.dimension()
        foreign = [
            point.entry
            for point in points
            if point.fingerprint != index_fingerprint(point.entry, model=model, dimension=dimension)
        ]
        messages = [indexed_message(entry) for entry in foreign if entry.kind == "episode"]
        before = await preceding_texts(self._timeline, messages)
        made = {point.entry.id: point for point in await make_points(foreign, side.embedder, preceding=before)}
        return [made.get(point.entry.id, point) for point in points]
