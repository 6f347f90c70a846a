"""Erasing a user, or a thread: fences first, then every data holder, then a scan, and last a receipt.

Each erasure is written down before it begins, with whose it is, and done by a task of its own: it goes on when whoever
asked for it leaves, is tried again while a store is down, and where a kill cut it off, the next start takes it up, or
another process on the same documents. Only once a scan has found nothing is the name taken out of the record, which is
the receipt from then on. Until the fences are lifted nobody can write to the scope: what comes then starts afresh.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from memory.data_holders import DataHolder
from memory.erasures import Erasure, Erasures, hash_of
from memory.errors import ErasurePending, RecollectError, StoreUnavailable
from memory.fences import Fences
from memory.scope import Scope
from memory.sweep import Sweep
from memory.times import Clock

logger = logging.getLogger(__name__)

ROUNDS = 20
ROUND_SECONDS = 0.25
"""What a scan finds is erased again, so often and so far apart: another process may just be taking something back."""
OTHERS = timedelta(seconds=60)
"""An erasure that its process has not touched for so long is taken over by another."""
BATCH = 1_000


@dataclass
class Erasing:
    """Erases. `start` begins to look for erasures that were cut off; `close` ends that, and leaves what is running."""

    erasures: Erasures
    fences: Fences
    holders: Sequence[DataHolder]
    clock: Clock
    sweep_seconds: float
    _running: dict[Scope, "asyncio.Task[Erasure]"] = field(
        init=False, default_factory=dict[Scope, "asyncio.Task[Erasure]"]
    )
    _scopes: dict[str, Scope] = field(init=False, default_factory=dict[str, Scope])
    _sweep: Sweep = field(init=False)

    def __post_init__(self) -> None:
        self._sweep = Sweep("erasures-sweep", self.go_on, seconds=self.sweep_seconds)

    async def prepare(self) -> None:
        """Fence out all writers of what an earlier process of this DATA_DIR was erasing, before any begins.

        On documents that processes share the tombstones say so by themselves.
        """
        if self.erasures.is_shared:
            return
        for erasure in await self.erasures.unfinished(limit=BATCH):
            if erasure.scope is not None:
                self.fences.close(erasure.scope, erasure.id)
                self._scopes[erasure.id] = erasure.scope

    def start(self) -> None:
        """Begin to go on with what was cut off: at once, and again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop; what is under way is taken up by the next start."""
        await self._sweep.close()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def erase(self, scope: Scope, *, by: str) -> Erasure:
        """Erase the user, or the thread. The receipt; of an unknown one it says zeros.

        While it is under way already, by whomever, this waits for that one.

        Raises:
            ErasurePending: something could not be reached; it goes on by itself, and a repeat of this tries at once.
            StoreUnavailable: the documents cannot be reached, nothing was begun; or the service is stopping.
        """
        task = self._running.get(scope)
        if task is None:
            task = self._own(scope, self._begin(scope, by))
        await asyncio.wait({task})
        if task.cancelled():
            raise StoreUnavailable("The service is stopping; its next start goes on with the erasure.")
        return task.result()

    async def has_any(self, scope: Scope) -> bool:
        """Whether a scan finds anything of the scope, or an erasure of it is still under way.

        Raises:
            StoreUnavailable: what can be reached has nothing.
        """
        subject = await self.fences.subject(scope)
        if any(erasure.subject == subject for erasure in await self.erasures.unfinished(limit=BATCH)):
            return True
        for holder in self.holders:
            if await holder.remaining(scope):
                return True
        return False

    async def receipt(self, erasure_id: str) -> Erasure | None:
        """The receipt of an erasure, or how far it is; None where there is none of this id."""
        return await self.erasures.erasure(erasure_id)

    async def is_by(self, erasure: Erasure, name: str) -> bool:
        """Whether whoever has this name asked for it."""
        return erasure.by == await self._asker(name)

    async def go_on(self) -> None:
        """Take up erasures that wait for a store, or whose process is gone."""
        late = self.clock() - OTHERS
        for erasure in await self.erasures.unfinished(limit=BATCH):
            is_left = not self.erasures.is_shared or erasure.id in self._scopes or erasure.touched_at < late
            scope = erasure.scope or self._scopes.get(erasure.id)
            if not is_left or scope in self._running:
                continue
            if scope is None:
                await self._end(erasure)
            else:
                await asyncio.wait({self._own(scope, self._go_on(erasure, scope))})

    async def _asker(self, name: str) -> str:
        """Who asks, as a receipt may keep it: a name may be made of the erased user's id."""
        return hash_of(await self.erasures.secret(), "asker", name)

    def _own(self, scope: Scope, work: Coroutine[Any, Any, Erasure]) -> "asyncio.Task[Erasure]":
        task = asyncio.create_task(work, name="erasure")
        self._running[scope] = task
        task.add_done_callback(lambda task: self._ended(scope, task))
        return task

    def _ended(self, scope: Scope, task: "asyncio.Task[Erasure]") -> None:
        del self._running[scope]
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, RecollectError):
            logger.error("an erasure broke", extra={"action": "erasure_broke"}, exc_info=error)

    async def _begin(self, scope: Scope, by: str) -> Erasure:
        subject = await self.fences.subject(scope)
        for erasure in await self.erasures.unfinished(limit=BATCH):
            if erasure.subject == subject:
                return await self._go_on(erasure, scope)
        now = self.clock()
        asker = await self._asker(by)
        erasure = Erasure(id=uuid4().hex, subject=subject, by=asker, erased_at=now, touched_at=now, scope=scope)
        await self.erasures.put(erasure)
        return await self._go_on(erasure, scope)

    async def _go_on(self, erasure: Erasure, scope: Scope) -> Erasure:
        """Do all of it, or what is left.

        Raises:
            ErasurePending: something could not be reached.
        """
        self._scopes[erasure.id] = scope
        try:
            if erasure.scope is not None:
                await self._fence(erasure, scope)
                erasure = await self._until_empty(erasure, scope)
            return await self._end(erasure)
        except ErasurePending:
            raise
        except RecollectError as error:
            raise ErasurePending(erasure.id, "a store") from error

    async def _fence(self, erasure: Erasure, scope: Scope) -> None:
        await self.fences.raise_(scope, erasure.id, at=self.clock())
        if not await self.fences.quiet(scope):
            raise ErasurePending(erasure.id, "a writer")

    async def _until_empty(self, erasure: Erasure, scope: Scope) -> Erasure:
        for number in range(ROUNDS):
            if number:
                await asyncio.sleep(ROUND_SECONDS)
            erasure, failed = await self._empty(erasure, scope)
            if not failed and not any(erasure.remaining.values()):
                return replace(erasure, scope=None)
            await self.erasures.put(erasure)
            if failed:
                raise ErasurePending(erasure.id, ", ".join(failed))
        raise ErasurePending(erasure.id, "late writers")

    async def _empty(self, erasure: Erasure, scope: Scope) -> tuple[Erasure, list[str]]:
        """Go once through all holders, and scan them; the erasure with what was counted, and who could not be asked."""
        counts, remaining = dict(erasure.counts), dict[str, int | None]()
        failed = list[str]()
        for holder in self.holders:
            try:
                counts[holder.name] = counts.get(holder.name, 0) + await holder.erase(scope)
            except (RecollectError, OSError) as error:
                failed.append(holder.name)
                counts.setdefault(holder.name, 0)
                _log_waiting(holder.name, error)
            # What was counted is gone: it must not be forgotten by a kill.
            erasure = replace(erasure, counts=counts, touched_at=self.clock())
            await self.erasures.put(erasure)
        for holder in self.holders:
            try:
                remaining[holder.name] = await holder.remaining(scope)
            except (RecollectError, OSError) as error:
                remaining[holder.name] = None
                failed.append(holder.name)
                _log_waiting(holder.name, error)
        return replace(erasure, remaining=remaining), list(dict.fromkeys(failed))

    async def _end(self, erasure: Erasure) -> Erasure:
        """All is gone: take the name out of the record, and the bytes off this machine's disk; lift the fence."""
        await self.erasures.put(replace(erasure, touched_at=self.clock()))
        if erasure.is_of_a_user:
            await self.erasures.scrub()
        await self.erasures.lift_fence(erasure.subject, erasure.id, at=self.clock())
        erasure = replace(erasure, is_done=True)
        await self.erasures.put(erasure)
        scope = self._scopes.pop(erasure.id, None)
        if scope is not None:
            self.fences.reopen(scope, erasure.id)
        logger.info("erased", extra={"action": "erased", "erasure_id": erasure.id, "counts": dict(erasure.counts)})
        return erasure


def _log_waiting(holder: str, error: Exception) -> None:
    logger.warning(
        "a data holder could not be emptied yet",
        extra={"action": "erasure_holder_waits", "holder": holder, "error": type(error).__name__},
    )
