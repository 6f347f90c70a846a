"""Opens the vector index on a Qdrant server: generations of a collection behind one alias for all processes."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from qdrant_client import AsyncQdrantClient, models
from typing_extensions import override

from recollect.memory.ports.vector_index import VectorIndex, collection_name
from recollect.memory.stores.points import generation_name, generation_of, siblings
from recollect.memory.stores.qdrant.collection import QdrantCollection, QdrantServer, ServingCollection
from recollect.memory.stores.qdrant.layout import SERVERS_OWN, CollectionLayout
from recollect.memory.stores.qdrant.points import QdrantPoints, among, owned_by
from recollect.memory.stores.rebuildable_index import Copying, Generations, RebuildableIndex
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys
from recollect.memory.values.scope import Scope

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_qdrant_index(
    server: QdrantServer | AsyncQdrantClient,
    *,
    base: str,
    model: str,
    dimension: int,
    layout: CollectionLayout = SERVERS_OWN,
    keys: FilterKeys = NO_KEYS,
) -> AsyncGenerator[VectorIndex]:
    """Open the embedder's collection on a server; a client that is handed in is used and left open.

    Points get terms of the `keys`.

    A server that is down is no error: its calls raise IndexUnavailable until it is there, and the first call that
    reaches it creates the collection where it is missing.

    Raises:
        ConfigurationError: QDRANT_URL is no URL, or its server is older than 1.19.
    """
    async with AsyncExitStack() as opened:
        client = server
        if isinstance(client, QdrantServer):
            client = client.connect()
            opened.push_async_callback(client.close)
        name = collection_name(base, model=model, dimension=dimension)
        serving = ServingCollection(client, name=name, dimension=dimension, layout=layout, keys=keys)
        try:
            await serving.check()
        except IndexUnavailable as error:
            log.warning(
                "the vector index cannot be reached; starting without search",
                extra={"action": "index_unavailable", "collection": name, "reason": error.message},
            )
        opened.callback(serving.close)
        yield RebuildableIndex("qdrant", QdrantGenerations(serving, base=base))


class QdrantGenerations(Generations):
    """The collections `<name>`, then `<name>.r2`, …; the alias `<name>.current` leads to the one that serves.

    Other processes use the alias too, and so follow a promotion at once. A successor always has the next number, so
    that the next rebuild continues one that was killed.
    """

    def __init__(self, serving: ServingCollection, *, base: str) -> None:
        self._current = QdrantPoints(serving)
        self._serving = serving
        self._client = serving.client
        self._base = base
        self._number = 1

    @property
    @override
    def current(self) -> QdrantPoints:
        return self._current

    @override
    @asynccontextmanager
    async def successor(self) -> AsyncGenerator[QdrantPoints]:
        self._number = await self._serving_number()
        serving = self._serving
        collection = QdrantCollection(
            self._client, name=self._following, dimension=serving.dimension, layout=serving.layout, keys=serving.keys
        )
        try:
            points = QdrantPoints(collection)
            await points.count()  # creates it
            yield points
        finally:
            collection.close()

    @override
    async def promote(self) -> None:
        """Promote the successor, unless another process has promoted it already."""
        now = await self._serving_number()
        if now == self._number:
            await self._serving.serve(self._following)
        elif now != self._number + 1:
            raise IndexUnavailable("Another process has rebuilt the index meanwhile; look at it with the doctor.")

    @override
    async def drop_old(self) -> None:
        number = await self._serving_number()
        for name in await self._listed():
            found = generation_of(name, name=self._serving.name)
            if found is not None and found < number:
                await self._serving.ask(lambda name=name: self._client.delete_collection(name))

    @override
    async def other_collections(self) -> list[str]:
        return siblings(self._base, names=await self._listed(), own=self._serving.name)

    @override
    async def drop_other(self, name: str) -> None:
        """Delete all generations of the collection; the server deletes their aliases with them."""
        for found in await self._listed():
            if name != self._serving.name and generation_of(found, name=name) is not None:
                await self._serving.ask(lambda found=found: self._client.delete_collection(found))

    @override
    async def erase_elsewhere(self, scope: Scope) -> int:
        """Delete in other embedders' collections, and in generations that do not serve."""
        deleted = 0
        for name in await self._elsewhere():
            chosen = models.FilterSelector(filter=owned_by(scope))
            found = await self._count(name, scope)
            await self._serving.ask(lambda name=name, chosen=chosen: self._client.delete(name, chosen, wait=True))
            deleted += found
        return deleted

    @override
    async def remove_elsewhere(self, *, user_id: str, ids: Sequence[str]) -> None:
        if not ids:
            return
        chosen = models.FilterSelector(filter=among(user_id, ids))
        listed = await self._listed()
        others = siblings(self._base, names=listed, own=self._serving.name)
        for name in [name for name in listed if any(generation_of(name, name=other) is not None for other in others)]:
            await self._serving.ask(lambda name=name: self._client.delete(name, chosen, wait=True))

    @override
    async def remaining(self, scope: Scope) -> int:
        counts = [await self._count(name, scope) for name in await self._elsewhere()]
        return await self._count(self._serving.address, scope) + sum(counts)

    @override
    async def has_traces(self, user_id: str) -> bool:
        return False  # the files are the server's

    @override
    def copying(self) -> AbstractAsyncContextManager[Copying] | None:
        return None

    @override
    async def vacuum_elsewhere(self, seconds: float) -> None:
        """Do nothing: the files are the server's."""

    @override
    async def is_rewrite_due(self, seconds: float) -> bool:
        """Return False: the server's optimizer rewrites its files."""
        return False

    async def _elsewhere(self) -> list[str]:
        """Return all collections of the base name except the one that serves."""
        serving = await self._serving.ask(self._serving.target)
        listed = [name for name in await self._listed() if name != serving]
        own = [name for name in listed if generation_of(name, name=self._serving.name) is not None]
        others = siblings(self._base, names=listed, own=self._serving.name)
        return own + [name for name in listed if any(generation_of(name, name=other) is not None for other in others)]

    async def _count(self, name: str, scope: Scope) -> int:
        answer = await self._serving.ask(lambda: self._client.count(name, count_filter=owned_by(scope), exact=True))
        return int(answer.count)

    @property
    def _following(self) -> str:
        return generation_name(self._serving.name, self._number + 1)

    async def _serving_number(self) -> int:
        serving = await self._serving.ask(self._serving.target)
        return generation_of(serving or "", name=self._serving.name) or 1

    async def _listed(self) -> list[str]:
        listed = await self._serving.ask(self._client.get_collections)
        return [item.name for item in listed.collections]
