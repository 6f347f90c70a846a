"""Forwards the calls of the vector index port, for wrappers that change only some of them."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from typing_extensions import override

from recollect.memory.ports.vector_index import Entry, Match, Point, PointStore, Query, Successor, VectorIndex
from recollect.memory.values.scope import Scope

Answer = TypeVar("Answer")


class ForwardingPoints(PointStore):
    """Forwards each call to the points with which `_read` does its work; `_write` may do that of writes otherwise."""

    @abstractmethod
    async def _read(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        """Do `work` with the points behind this wrapper, and return its answer."""
        ...

    async def _write(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        return await self._read(work)

    @override
    async def upsert(self, points: Sequence[Point]) -> None:
        await self._write(lambda store: store.upsert(points))

    @override
    async def search(self, query: Query) -> list[Match]:
        return await self._read(lambda store: store.search(query))

    @override
    async def rank(self, queries: Sequence[Query]) -> list[dict[str, float]]:
        return await self._read(lambda store: store.rank(queries))

    @override
    async def fingerprints(self, ids: Sequence[str]) -> dict[str, str | None]:
        return await self._read(lambda store: store.fingerprints(ids))

    @override
    async def entries(self, ids: Sequence[str]) -> list[Entry]:
        return await self._read(lambda store: store.entries(ids))

    @override
    async def ids(self, *, after: str | None = None, limit: int = 500, scope: Scope | None = None) -> list[str]:
        return await self._read(lambda store: store.ids(after=after, limit=limit, scope=scope))

    @override
    async def users(self) -> list[str]:
        return await self._read(lambda store: store.users())

    @override
    async def threads(self, user_id: str) -> list[str]:
        return await self._read(lambda store: store.threads(user_id))

    @override
    async def count(self, *, user_id: str | None = None, thread_id: str | None = None) -> int:
        return await self._read(lambda store: store.count(user_id=user_id, thread_id=thread_id))

    @override
    async def retouch(self, entries: Sequence[Entry]) -> int:
        return await self._write(lambda store: store.retouch(entries))

    @override
    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        await self._write(lambda store: store.remove(user_id=user_id, ids=ids))

    @override
    async def delete(self, scope: Scope) -> int:
        return await self._write(lambda store: store.delete(scope))

    @override
    async def ping(self) -> None:
        await self._read(lambda store: store.ping())


class ForwardingIndex(ForwardingPoints, VectorIndex):
    """Forwards each call to the index that `_opened` returns."""

    @abstractmethod
    async def _opened(self) -> VectorIndex:
        """Return the index behind this wrapper."""
        ...

    @override
    async def _read(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        return await work(await self._opened())

    @override
    @asynccontextmanager
    async def rebuilding(self) -> AsyncGenerator[Successor]:
        async with (await self._opened()).rebuilding() as successor:
            yield successor

    @override
    async def other_collections(self) -> list[str]:
        return await (await self._opened()).other_collections()

    @override
    async def drop_other(self, name: str) -> None:
        await (await self._opened()).drop_other(name)

    @override
    async def erase(self, scope: Scope) -> int:
        return await (await self._opened()).erase(scope)

    @override
    async def remaining(self, scope: Scope) -> int:
        return await (await self._opened()).remaining(scope)

    @override
    async def rewrite(self) -> None:
        await (await self._opened()).rewrite()

    @override
    async def vacuum(self, seconds: float) -> bool:
        return await (await self._opened()).vacuum(seconds)
