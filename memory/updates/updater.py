"""Owns the background work on pending updates, which survives kills, outages and other processes.

An active user has a `UserWork` (`user_work.py`), under one claim at a time. The updater starts it when a turn is
committed, when a back-off ends, and when the sweep finds what another process left; it renews the claims and drains the
work at shutdown.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import uuid4

from recollect.memory.background.sweep import Sweep, end_tasks
from recollect.memory.ports.store import Store
from recollect.memory.updates.right_of_way import RightOfWay
from recollect.memory.updates.step_work import StepWork
from recollect.memory.updates.user_work import RETRY, UserWork, WorkContext
from recollect.memory.updates.work_claim import LEASE
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import StepName, Update

logger = logging.getLogger(__name__)

RENEW_SECONDS = LEASE.total_seconds() / 3
POLL_SECONDS, OWN_POLL_SECONDS = 0.25, 5.0
"""How often a waiter reads the store for what another process may have recorded. Where this process holds the user's
claim the interval is longer, because `recorded` wakes the waiter."""
SWEEP_USERS = 1_000


@frozen
class _ActiveWork:
    work: UserWork
    task: "asyncio.Task[datetime | None]"


@dataclass(slots=True, eq=False)
class _Waiter:
    """Somebody who waits for a turn; `update` is what was recorded since they last looked."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    update: Update | None = None


class Updater:
    """Owns all background work on updates. Whoever opens the memory starts and drains it.

    Without `works` it begins no work: other processes do it, and waiters look for what those have recorded.
    """

    def __init__(
        self,
        store: Store,
        steps: Mapping[StepName, StepWork],
        *,
        clock: Clock,
        concurrency: int,
        sweep_seconds: float,
        works: bool = True,
    ) -> None:
        self._store = store
        self._clock = clock
        self.way = RightOfWay()
        # Each kind of step has slots of its own: a kind whose model hangs must not use up those of the others.
        slots: Mapping[StepName, asyncio.Semaphore] = {name: asyncio.Semaphore(concurrency) for name in steps}
        self._context = WorkContext(store, steps, clock, uuid4().hex, slots, self._recorded, self.way)
        self._sweeps = (
            Sweep("updates-sweep", self._find_left, seconds=sweep_seconds),
            Sweep("updates-renew", self._renew, seconds=RENEW_SECONDS),
        )
        self._active: dict[str, _ActiveWork] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._deferring: dict[str, UserWork] = {}
        self._waiters: dict[tuple[str, str], list[_Waiter]] = {}
        self._closing = not works

    def start(self) -> None:
        """Start the sweep, which resumes what an earlier process left, and the renewal of claims."""
        if self._closing:
            return
        for sweep in self._sweeps:
            sweep.start()

    def notify(self, user_id: str, committed: Turn | None = None) -> None:
        """Work on this user's updates at once, because a turn was committed or a step came due.

        `committed` is the turn that this process has just committed.
        """
        if self._closing:
            return
        timer = self._timers.pop(user_id, None)
        if timer is not None:
            timer.cancel()
        self._deferring.pop(user_id, None)
        if user_id not in self._active:
            work = UserWork(self._context, user_id)
            # A context of its own: the work outlives the turn that begins it, and goes on with others.
            task = asyncio.create_task(work.run(), name="updates-user", context=Context())
            self._active[user_id] = _ActiveWork(work, task)
            task.add_done_callback(lambda task: self._work_ended(work, task))
        active = self._active[user_id].work
        if committed is not None:
            active.announce(committed)
        # Set `wake` for work that runs already too: it may have read the pending turns before this one was committed.
        active.wake.set()

    def _work_ended(self, work: UserWork, task: "asyncio.Task[datetime | None]") -> None:
        """Plan the next work of a user whose work has ended: at once if it was woken too late, else when a step is due.

        `notify` may set `wake` after the work has looked at it for the last time and before it is removed here.
        """
        del self._active[work.user_id]
        if self._closing:
            return
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("update work broke", extra={"action": "update_broke"}, exc_info=error)
        until = self._clock() + RETRY if error is not None or task.cancelled() else task.result()
        if work.wake.is_set():
            self.notify(work.user_id)
        elif until is not None:
            self._deferring[work.user_id] = work
            delay = max(0.0, (until - self._clock()).total_seconds())
            loop = asyncio.get_running_loop()
            self._timers[work.user_id] = loop.call_later(delay, self.notify, work.user_id)

    def _recorded(self, user_id: str, turn_id: str, update: Update) -> None:
        """Wake those who wait for this turn with its update: one of its steps was recorded or deferred."""
        for waiter in self._waiters.get((user_id, turn_id), ()):
            waiter.update = update
            waiter.event.set()

    async def wait_tried(self, *, user_id: str, turn_id: str, seconds: float) -> Update | None:
        """Return the turn's update once each step was tried, has ended or is deferred, or after `seconds` as it is.

        None if the turn has no update.
        """
        return await self._wait(user_id, turn_id, seconds, lambda update: update.is_tried)

    async def wait_ended(self, *, user_id: str, turn_id: str, seconds: float) -> Update | None:
        """Return the turn's update once no step is pending but deferred ones, or after `seconds` as it is.

        None if the turn has no update.
        """
        with self.way.urgent(user_id):
            return await self._wait(user_id, turn_id, seconds, lambda update: update.status != "pending")

    async def wait_all_ended(self, turns: Sequence[Turn], *, seconds: float) -> list[Update | None]:
        """Return the result of `wait_ended` for each turn; all of them together wait for at most `seconds`."""
        deadline = asyncio.get_running_loop().time() + seconds
        updates: list[Update | None] = []
        for turn in turns:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            message = turn.message
            updates.append(await self.wait_ended(user_id=message.user_id, turn_id=message.turn_id, seconds=left))
        return updates

    async def _wait(
        self, user_id: str, turn_id: str, seconds: float, enough: Callable[[Update], bool]
    ) -> Update | None:
        waiter = _Waiter()
        waiters = self._waiters.setdefault((user_id, turn_id), [])
        waiters.append(waiter)
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            while True:
                # Cleared before reading: what is recorded during the read wakes the waiter once more.
                waiter.event.clear()
                recorded, waiter.update = waiter.update, None
                update = recorded or await self._update_of(user_id, turn_id)
                left = deadline - asyncio.get_running_loop().time()
                if update is None or enough(self._without_deferred(user_id, turn_id, update)) or left <= 0:
                    return update
                with contextlib.suppress(TimeoutError):
                    active = self._active.get(user_id)
                    is_own = active is not None and active.work.has_claim
                    await asyncio.wait_for(waiter.event.wait(), min(OWN_POLL_SECONDS if is_own else POLL_SECONDS, left))
        finally:
            waiters.remove(waiter)
            if not waiters:
                del self._waiters[user_id, turn_id]

    def deferred_steps(self, user_id: str, turn_id: str) -> Mapping[StepName, datetime | None]:
        """Return the turn's steps that this process defers, and when each starts at the latest."""
        active = self._active.get(user_id)
        work = active.work if active is not None else self._deferring.get(user_id)
        return work.deferred_steps(turn_id) if work is not None else {}

    def _without_deferred(self, user_id: str, turn_id: str, update: Update) -> Update:
        """Return the update without its deferred steps: nobody should wait for those."""
        deferred_steps = self.deferred_steps(user_id, turn_id)
        if not deferred_steps:
            return update
        steps = {name: step for name, step in update.steps.items() if name not in deferred_steps}
        return replace(update, steps=steps)

    async def _update_of(self, user_id: str, turn_id: str) -> Update | None:
        active = self._active.get(user_id)
        held = active.work.held(turn_id) if active is not None else None
        if held is not None:
            return held
        turn = await self._store.conversations.turn(user_id=user_id, turn_id=turn_id)
        return turn.update if turn is not None else None

    async def drain(self, seconds: float) -> None:
        """Start no more work, wait up to `seconds` for what runs, then cancel the rest; the next start resumes it."""
        self._closing = True
        self.way.open()
        for sweep in self._sweeps:
            await sweep.close()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        tasks = {active.task for active in self._active.values()}
        if not tasks:
            return
        logger.info("draining updates", extra={"action": "updates_draining", "users": len(tasks)})
        _, late = await asyncio.wait(tasks, timeout=seconds)
        if late:
            logger.warning("updates left for the next start", extra={"action": "updates_aborted", "users": len(late)})
        await end_tasks(*late)

    async def _find_left(self) -> None:
        """Start work for users with pending updates whom this process does not work for yet.

        That happens after a start, or when another process died.
        """
        for user_id in await self._store.updates.pending_users(limit=SWEEP_USERS):
            if user_id not in self._active and user_id not in self._timers:
                self.notify(user_id)

    async def _renew(self) -> None:
        """Renew the claims under which this process works, and end the work of those that were lost."""
        for active in list(self._active.values()):
            if not await active.work.renew():
                logger.warning("claim lost", extra={"action": "claim_lost"})
                active.task.cancel()
