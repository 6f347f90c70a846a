"""Erases a user, or a thread: blocks the fences, empties every data holder, scans them all, and keeps a receipt.

Each erasure is stored before it begins, with its scope, and runs in a task of its own: the task goes on when the caller
leaves, and is retried while a store is down. After a kill the next start resumes the erasure, or another process on the
same store does. The scope is removed from the record once a scan finds nothing; the record is the receipt from then on.
Nobody can write to the scope until the fences are lifted; later writers start with an empty scope.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from recollect.memory.background.sweep import Sweep
from recollect.memory.erasure.data_holders import DataHolder, ForeignHolder
from recollect.memory.erasure.fences import Fences
from recollect.memory.ports.erasures import Erasure, Erasures, keyed_hash
from recollect.memory.values.errors import ErasurePending, RecollectError, StoreUnavailable
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import Clock

logger = logging.getLogger(__name__)

ROUNDS = 20
ROUND_SECONDS = 0.25
"""Rounds of erasing what a scan finds, and the pause between: another process may just be undoing its late writes."""
OTHERS = timedelta(seconds=60)
"""An erasure that its process has not touched for this long is taken over by another process."""
BATCH = 1_000


@dataclass
class Erasing:
    """Erases users and threads, one task an erasure, and resumes erasures that were cut off.

    `foreign` are places of other programs. `_running` holds the task of each scope, so that a repeat waits for it;
    `_scopes` maps the erasures that this process must end to their scopes, which a receipt names no more.
    """

    erasures: Erasures
    fences: Fences
    holders: Sequence[DataHolder]
    clock: Clock
    sweep_seconds: float
    foreign: Sequence[ForeignHolder] = ()
    _running: dict[Scope, "asyncio.Task[Erasure]"] = field(
        init=False, default_factory=dict[Scope, "asyncio.Task[Erasure]"]
    )
    _scopes: dict[str, Scope] = field(init=False, default_factory=dict[str, Scope])
    _sweep: Sweep = field(init=False)

    def __post_init__(self) -> None:
        self._sweep = Sweep("erasures-sweep", self.go_on, seconds=self.sweep_seconds)

    async def prepare(self) -> None:
        """Block the scopes that an earlier process of this DATA_DIR was erasing; call it before any writer begins.

        A store that processes share needs none of it: its tombstones keep writers out.
        """
        if self.erasures.is_shared:
            return
        for erasure in await self.erasures.unfinished(limit=BATCH):
            if erasure.scope is not None:
                self.fences.block(erasure.scope, erasure.id)
                self._scopes[erasure.id] = erasure.scope

    def start(self) -> None:
        """Begin to resume erasures that were cut off: at once, and again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop the sweep and cancel running erasures; the next start resumes them."""
        await self._sweep.close()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def erase(self, scope: Scope, *, by: str) -> Erasure:
        """Erase the user, or the thread, and return the receipt; its counts are 0 where nothing was stored.

        `by` names who asks. Where an erasure of `scope` is under way already, wait for that one.

        Raises:
            ErasurePending: something could not be reached; the erasure is retried, and a repeat of this retries now.
            StoreUnavailable: the store cannot be reached, nothing was begun; or the service is stopping.
        """
        task = self._running.get(scope)
        if task is None:
            task = self._own(scope, self._begin(scope, by))
        # Wait without awaiting the task itself: a caller that is cancelled must not cancel the erasure.
        await asyncio.wait({task})
        if task.cancelled():
            raise StoreUnavailable("The service is stopping; its next start goes on with the erasure.")
        return task.result()

    async def erase_if_any(self, scope: Scope, by: str) -> Erasure | None:
        """Erase as `erase` does; return None if there is nothing of `scope`."""
        return await self.erase(scope, by=by) if await self.has_any(scope) else None

    async def has_any(self, scope: Scope) -> bool:
        """Tell whether a scan finds anything of `scope`, or an erasure of it is still under way.

        Raises:
            StoreUnavailable: a holder cannot be reached, and those before it have nothing.
        """
        subject = await self.fences.subject(scope)
        if any(erasure.subject == subject for erasure in await self.erasures.unfinished(limit=BATCH)):
            return True
        for holder in self.holders:
            if await holder.remaining(scope):
                return True
        return False

    async def receipt(self, erasure_id: str) -> Erasure | None:
        """Return the receipt of an erasure, or its record so far; None where no erasure has this id."""
        return await self.erasures.erasure(erasure_id)

    async def is_by(self, erasure: Erasure, name: str) -> bool:
        """Tell whether the caller called `name` asked for `erasure`."""
        return erasure.by == await self._asker(name)

    async def go_on(self) -> None:
        """Resume erasures that wait for a store, or whose process is gone."""
        late = self.clock() - OTHERS
        for erasure in await self.erasures.unfinished(limit=BATCH):
            # On a shared store, leave to others what they touched lately: each would overwrite the other's counts.
            is_left = not self.erasures.is_shared or erasure.id in self._scopes or erasure.touched_at < late
            scope = erasure.scope or self._scopes.get(erasure.id)
            if not is_left or scope in self._running:
                continue
            if scope is None:  # everything is deleted, and a kill cut off the end
                await self._end(erasure)
            else:
                await asyncio.wait({self._own(scope, self._go_on(erasure, scope))})

    async def _asker(self, name: str) -> str:
        """Return the keyed hash of `name`, which may contain the erased user's id, for the receipt."""
        return keyed_hash(await self.erasures.secret(), "asker", name)

    def _own(self, scope: Scope, work: Coroutine[Any, Any, Erasure]) -> "asyncio.Task[Erasure]":
        """Run `work` in a task that this object owns, as the one erasure of `scope`."""
        task = asyncio.create_task(work, name="erasure")
        self._running[scope] = task
        task.add_done_callback(lambda task: self._ended(scope, task))
        return task

    def _ended(self, scope: Scope, task: "asyncio.Task[Erasure]") -> None:
        del self._running[scope]
        # Ask for the error: nobody may be waiting for the task any more.
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
        # Store the record before the fence rises: after a kill it is resumed, and the fence is lifted in the end.
        await self.erasures.put(erasure)
        return await self._go_on(erasure, scope)

    async def _go_on(self, erasure: Erasure, scope: Scope) -> Erasure:
        """Do what is left of `erasure`, and return the receipt.

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
        """Block `scope`, and wait for the writers inside, before anything is deleted."""
        await self.fences.fence_out(scope, erasure.id, at=self.clock())
        if not await self.fences.quiet(scope):
            raise ErasurePending(erasure.id, "a writer")

    async def _until_empty(self, erasure: Erasure, scope: Scope) -> Erasure:
        """Empty the holders until a scan finds nothing, and return the erasure without its scope.

        Raises:
            ErasurePending: a holder could not be reached, or late writers wrote in each of `ROUNDS`.
        """
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
        """Empty each holder once, then scan them all; return the erasure with its counts, and the holders that failed.

        A holder that cannot be reached does not keep the others from being emptied.
        """
        counts, remaining = dict(erasure.counts), dict[str, int | None]()
        failed = list[str]()
        foreign = [one for one in self.foreign if one.name in counts or await one.is_there(scope)]
        holders = [*self.holders, *foreign]
        for holder in holders:
            try:
                counts[holder.name] = counts.get(holder.name, 0) + await holder.erase(scope)
            except (RecollectError, OSError) as error:
                failed.append(holder.name)
                counts.setdefault(holder.name, 0)
                _log_waiting(holder.name, error)
            # Store the count at once: a resumed erasure cannot count again what is deleted.
            erasure = replace(erasure, counts=counts, touched_at=self.clock())
            await self.erasures.put(erasure)
        # Scan after all are emptied: a late writer may write to a holder that was emptied before.
        for holder in holders:
            try:
                remaining[holder.name] = await holder.remaining(scope)
            except (RecollectError, OSError) as error:
                remaining[holder.name] = None
                failed.append(holder.name)
                _log_waiting(holder.name, error)
        return replace(erasure, remaining=remaining), list(dict.fromkeys(failed))

    async def _end(self, erasure: Erasure) -> Erasure:
        """End an erasure that has deleted everything: store it without its scope, scrub the files, lift the fences.

        A kill anywhere leaves a record that is not done, and each of these steps can be done twice.
        """
        # Before the files are scrubbed, so that the name goes from the disk too; the touch keeps other processes off.
        await self.erasures.put(replace(erasure, touched_at=self.clock()))
        if erasure.is_of_a_user:
            await self.erasures.scrub()
        # Before the record is done: nobody would lift the fence of a finished record.
        await self.erasures.unblock(erasure.subject, erasure.id, at=self.clock())
        erasure = replace(erasure, is_done=True)
        await self.erasures.put(erasure)
        scope = self._scopes.pop(erasure.id, None)
        if scope is not None:
            self.fences.unblock(scope, erasure.id)
        logger.info("erased", extra={"action": "erased", "erasure_id": erasure.id, "counts": dict(erasure.counts)})
        return erasure


def _log_waiting(holder: str, error: Exception) -> None:
    logger.warning(
        "a data holder could not be emptied yet",
        extra={"action": "erasure_holder_waits", "holder": holder, "error": type(error).__name__},
    )
