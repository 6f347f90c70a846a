"""Rebuilds an index while it serves: a successor is filled beside the current generation and replaces it."""

import asyncio
import logging
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

from typing_extensions import override

from recollect.memory.ports.forwarding_index import Answer, ForwardingPoints
from recollect.memory.ports.vector_index import PointStore, Successor, VectorIndex
from recollect.memory.values.errors import IndexUnavailable, Rebuilding, RecollectError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

logger = logging.getLogger(__name__)


class Generations(Protocol):
    """A backend's collections of one name: one of them serves, and each rebuild makes the next."""

    @property
    @abstractmethod
    def current(self) -> PointStore:
        """Return the generation that serves now."""
        ...

    @abstractmethod
    def successor(self) -> AbstractAsyncContextManager[PointStore]:
        """Open the next generation, created where a killed rebuild left none; exit closes it and keeps its points."""
        ...

    @abstractmethod
    async def promote(self) -> None:
        """Make the open successor `current`, durably and between two calls."""
        ...

    @abstractmethod
    async def drop_old(self) -> None:
        """Remove the generations before the current one."""
        ...

    @abstractmethod
    async def other_collections(self) -> list[str]:
        """Return the collections of other embedders, as `VectorIndex.other_collections` does."""
        ...

    @abstractmethod
    async def drop_other(self, name: str) -> None:
        """Delete another embedder's collection, as `VectorIndex.drop_other` does."""
        ...

    @abstractmethod
    async def erase_elsewhere(self, scope: Scope) -> int:
        """Delete the scope's points in all collections except the current one and an open successor.

        Where the files are on this machine, a whole user's text has left those files too when this returns.
        """
        ...

    @abstractmethod
    async def remove_elsewhere(self, *, user_id: str, ids: Sequence[str]) -> None:
        """Delete these points of the user, and so their texts, in other embedders' collections."""
        ...

    @abstractmethod
    async def remaining(self, scope: Scope) -> int:
        """Return how many points of the scope are left, as `VectorIndex.remaining` does."""
        ...

    @abstractmethod
    async def has_traces(self, user_id: str) -> bool:
        """Tell whether the current collection's files may hold text of a user who has no more points in it."""
        ...

    @abstractmethod
    async def vacuum_elsewhere(self, seconds: float) -> None:
        """Vacuum other embedders' collections where their files are on this machine; see `VectorIndex.vacuum`."""
        ...

    @abstractmethod
    async def is_rewrite_due(self, seconds: float) -> bool:
        """Tell whether files on this machine hold deleted text and are due for a rewrite; see `VectorIndex.vacuum`."""
        ...

    @abstractmethod
    def copying(self) -> AbstractAsyncContextManager["Copying"] | None:
        """Open an empty successor in place of an open one; return None where the files are on a server."""
        ...


@frozen
class Copying:
    """An empty successor's points, and what fills them from the current ones without embedding anything again.

    `copy_some` copies the next page of the current collection, and returns False after the last one.
    """

    points: PointStore
    copy_some: Callable[[], Awaitable[bool]]


class RebuildableIndex(ForwardingPoints, VectorIndex):
    """Implements VectorIndex over a backend's generations.

    While a successor is being filled, each write goes to both, one write at a time, so that both see the same order.
    The old generation is dropped once the last call on it has ended.
    """

    def __init__(self, name: str, generations: Generations) -> None:
        self.name = name
        self._generations = generations
        self._is_rebuilding = False
        self._filling: _Filling | None = None
        self._writing = asyncio.Lock()
        self._turning = asyncio.Lock()
        self._rewrites_begun, self._rewritten = 0, 0
        self._age = 0
        self._calls = Counter[int]()
        self._writes = 0
        self._ended = asyncio.Event()

    @override
    async def remove(self, *, user_id: str, ids: Sequence[str]) -> None:
        await super().remove(user_id=user_id, ids=ids)
        await self._generations.remove_elsewhere(user_id=user_id, ids=ids)

    @override
    async def other_collections(self) -> list[str]:
        return await self._generations.other_collections()

    @override
    async def drop_other(self, name: str) -> None:
        await self._generations.drop_other(name)

    @override
    @asynccontextmanager
    async def rebuilding(self) -> AsyncGenerator["_Filling"]:
        if self._is_rebuilding:
            raise Rebuilding
        # Set before the first await: of two calls at once, the second is refused.
        self._is_rebuilding = True
        try:
            async with AsyncExitStack() as opened:
                async with self._turning:
                    await self._generations.drop_old()
                    points = await opened.enter_async_context(self._generations.successor())
                    filling = await opened.enter_async_context(self._followed(points))
                yield filling
        finally:
            self._is_rebuilding = False

    @override
    async def erase(self, scope: Scope) -> int:
        # Hold the lock over both deletions: a successor that is opened between them, with points that a killed rebuild
        # has left in it, would be missed by both.
        async with self._turning:
            deleted = await self.delete(scope) + await self._generations.erase_elsewhere(scope)
        if scope.thread_id is None and (deleted or await self._generations.has_traces(scope.user_id)):
            await self.rewrite()
        return deleted

    @override
    async def remaining(self, scope: Scope) -> int:
        return await self._generations.remaining(scope)

    @override
    async def rewrite(self) -> None:
        """Rewrite the files; one rewrite serves all callers that asked before it began."""
        copying = self._generations.copying()
        if copying is None:
            return
        asked = self._rewrites_begun
        async with self._turning:
            # A rewrite that began after this call asked has copied none of the points deleted before.
            if self._rewritten > asked:
                return
            self._rewrites_begun += 1
            begun = self._rewrites_begun
            await self._rewrite(copying)
            self._rewritten = begun

    @override
    async def vacuum(self, seconds: float) -> bool:
        """Call `rewrite` if it is due, except during a rebuild, which removes deleted text anyway."""
        await self._generations.vacuum_elsewhere(seconds)
        if not await self._generations.is_rewrite_due(seconds):
            return False
        async with self._turning:
            # Another call may have rebuilt or rewritten the files while this one waited for the lock.
            if self._is_rebuilding or not await self._generations.is_rewrite_due(seconds):
                return False
            copying = self._generations.copying()
            if copying is None:
                return False
            await self._rewrite(copying)
        return True

    async def _rewrite(self, opening: AbstractAsyncContextManager[Copying]) -> None:
        # An erasure cannot wait for a rebuild, which embeds all texts: the rebuild fails and must be started again.
        given_up = self._filling
        if given_up is not None:
            async with self._writing:
                given_up.missed = IndexUnavailable()
                self._filling = None
            logger.warning("a rebuild was given up for an erasure", extra={"action": "rebuild_given_up"})
        await self._generations.drop_old()
        async with opening as copying, self._followed(copying.points) as filling:
            has_more = True
            while has_more:
                # The lock keeps writes out between reading a page and copying it: a copy cannot undo a later write.
                async with self._writing:
                    has_more = await copying.copy_some()
            await self._promote(filling)

    @asynccontextmanager
    async def _followed(self, points: PointStore) -> AsyncGenerator["_Filling"]:
        """Apply every write to `points` too, until exit."""
        filling = _Filling(points, self._promote_in_turn)
        try:
            async with self._writing:
                self._filling = filling
                # A write that began earlier goes to the old generation alone. Wait for it: whoever fills the successor
                # reads the store after this, and so finds its text there.
                await self._until(lambda: not self._writes)
            yield filling
        finally:
            if self._filling is filling:
                self._filling = None

    async def _promote_in_turn(self, filling: "_Filling") -> None:
        async with self._turning:
            await self._promote(filling)

    async def _promote(self, filling: "_Filling") -> None:
        async with self._writing:
            if filling.missed is not None:
                raise IndexUnavailable("The new collection missed a write; reindex again.") from filling.missed
            await self._generations.promote()
            self._filling = None
            # Calls that began before now still use the old generation; `_calls` counts them by age.
            last, self._age = self._age, self._age + 1
        await self._until(lambda: not self._calls[last])
        del self._calls[last]
        try:
            await self._generations.drop_old()
        except RecollectError as error:
            reason = type(error).__name__
            logger.warning("the old collection stays for now", extra={"action": "old_index_stays", "reason": reason})

    @override
    async def _read(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        # Count the call under the present age before the first await: a switch then keeps the old generation for it.
        age = self._age
        self._calls[age] += 1
        try:
            return await work(self._generations.current)
        finally:
            self._calls[age] -= 1
            self._ended.set()

    @override
    async def _write(self, work: Callable[[PointStore], Awaitable[Answer]]) -> Answer:
        # Without a successor, writes run side by side. No await stands between this check and the count, so a rebuild
        # that begins now sees this write and waits for it.
        if self._filling is None:
            self._writes += 1
            try:
                return await self._read(work)
            finally:
                self._writes -= 1
                self._ended.set()
        # One write at a time while a successor is filled: both generations must see all writes in one order.
        async with self._writing:
            answer = await self._read(work)
            await self._follow(work)
            return answer

    async def _follow(self, work: Callable[[PointStore], Awaitable[object]]) -> None:
        if self._filling is not None and self._filling.missed is None:
            await self._filling.follow(work)

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; each call that ends wakes it. Only one rebuild at a time waits."""
        while not condition():
            self._ended.clear()
            await self._ended.wait()


class _Filling(Successor):
    """A successor that is being filled. `missed` is the error of a write that failed in it and bars promotion."""

    def __init__(self, points: PointStore, promote: Callable[["_Filling"], Awaitable[None]]) -> None:
        self.points = points
        self.missed: RecollectError | None = None
        self._promote = promote

    async def follow(self, work: Callable[[PointStore], Awaitable[object]]) -> None:
        """Repeat a write of the current generation here; a failure ends the rebuild and not the write."""
        try:
            await work(self.points)
        except RecollectError as error:
            self.missed = error
            logger.warning("the new collection missed a write", extra={"action": "rebuild_missed_a_write"})

    @override
    async def promote(self) -> None:
        await self._promote(self)
