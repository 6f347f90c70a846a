"""The work on one user's pending updates, while this process holds their claim.

Each kind of step has a queue of its own, so that a step that waits never holds up another kind; within a queue the
user's turns run in the order of their times. The work ends when nothing is due, and returns when to start it again.
"""

import asyncio
import logging
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from recollect.memory.ports.store import Store
from recollect.memory.updates.pending_turns import PendingTurns
from recollect.memory.updates.right_of_way import RightOfWay
from recollect.memory.updates.step_work import StepWork
from recollect.memory.updates.work_claim import WorkClaim
from recollect.memory.values.errors import RecollectError, StoreUnavailable, is_outage
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Step, StepName, Update, after_failure

logger = logging.getLogger(__name__)

RETRY = timedelta(seconds=0.5)
"""How long to wait before the next try where another process holds the claim, or the store cannot be reached."""

_TAKES_ALONG: Mapping[StepName, StepName] = {"index": "facts"}
"""The index step embeds what the facts step of its turn has taught, in one call with the turn's messages."""
TOGETHER_SECONDS = 1.0
"""The longest, in seconds, that a step waits for the one whose results it takes along, so that no model holds it up."""
MOST_YIELDING = 4
"""The most pending updates with which a user's work gives way to their turns; with more it must catch up."""


class Fenced(RecollectError):
    """Another process has taken over this user's updates."""

    code = "fenced"


@frozen
class WorkContext:
    """Holds what the works of all users share: the store, the steps with their slots, and who claims as `owner`.

    `recorded` gives a turn's update (user id, turn id) to those who wait for it: a step was recorded or deferred.
    `way` is the right of way of turns over the updates of turns before them.
    """

    store: Store
    steps: Mapping[StepName, StepWork]
    clock: Clock
    owner: str
    slots: Mapping[StepName, asyncio.Semaphore]
    recorded: Callable[[str, str, Update], None]
    way: RightOfWay


@frozen
class _Unrecorded:
    """A step that is done, whose record waits, at most `until` (of the loop's time), for that of another step."""

    name: StepName
    until: float


class UserWork:
    """Works off one user's updates. Set `wake` when there may be more; it counts until `run` has ended."""

    def __init__(self, context: WorkContext, user_id: str) -> None:
        self.user_id = user_id
        self.wake = asyncio.Event()
        self._context = context
        self._claim = WorkClaim(context.store.updates, user_id, owner=context.owner, clock=context.clock)
        self._pending = PendingTurns(user_id, steps=context.steps, clock=context.clock)
        self._held_until: dict[str, float] = {}  # by turn
        self._unrecorded: dict[str, _Unrecorded] = {}  # by turn
        self._writing = asyncio.Lock()

    @property
    def has_claim(self) -> bool:
        """Whether this work holds the user's claim: then no other process records anything."""
        return self._claim.is_held

    def held(self, turn_id: str) -> Update | None:
        """Return the turn's update as this work last recorded it, or was told of it; None if it knows no such turn."""
        return self._pending.held(turn_id)

    def announce(self, committed: Turn) -> None:
        """Hand over a turn that this process has just committed: its message need not be read again."""
        self._pending.announce(committed)

    def deferred_steps(self, turn_id: str) -> dict[StepName, datetime | None]:
        """Return the turn's steps that wait for other turns, and when each starts at the latest."""
        return self._pending.deferred_steps(turn_id)

    async def run(self) -> datetime | None:
        """Work until nothing is due; return when to start again, or None if nothing is left."""
        try:
            await self._give_way()
            if not await self._claim.take(self._pending.announced):
                return self._retry()
            try:
                return await self._run_queues()
            finally:
                await self._claim.release(all_ended=self._pending.are_all_ended)
        except Fenced:
            logger.warning("fenced out by a later owner", extra={"action": "fenced"})
        except StoreUnavailable:
            logger.warning("updates wait for the document store", extra={"action": "updates_wait"})
        return self._retry()

    def _retry(self) -> datetime:
        """Return when to try again.

        Clear `wake` too: a wake-up from before the failure would start the work again without the pause.
        """
        self.wake.clear()
        return self._context.clock() + RETRY

    async def renew(self) -> bool:
        """Extend the claim. Return False if it was lost: then the work must end."""
        return await self._claim.renew()

    async def _run_queues(self) -> datetime | None:
        # One task for each queue: a step that waits for a model, or for the end of an outage, holds up no other kind.
        tasks: dict[StepName, asyncio.Task[None]] = {}
        try:
            while True:
                await self._give_way()
                await self._read()
                await self._defer()
                await self._record_late(asyncio.get_running_loop().time())
                held = [unrecorded.until for unrecorded in self._unrecorded.values()]
                for name in self._context.steps:
                    turn = None if name in tasks else self._pending.due(name)
                    if turn is not None and (until := self._held(name, turn)) is not None:
                        held.append(until)
                    elif turn is not None:
                        tasks[name] = asyncio.create_task(self._run_step(name, turn), name=f"update-{name}")
                if not tasks:
                    await self._record_late()
                    if self._has_to_read():
                        continue
                    return self._pending.next_due()
                await self._wait_for_one(tasks, held)
                for name, task in list(tasks.items()):
                    if task.done():
                        del tasks[name]
                        task.result()
        finally:
            # The caller releases the claim next: no step may still be writing when another process takes the user.
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _give_way(self) -> None:
        """Wait while a turn of the user works, so that this work holds up neither its recall nor its writes."""
        if len(self._pending.updates) <= MOST_YIELDING:
            await self._context.way.given(self.user_id)

    async def _wait_for_one(self, tasks: Mapping[StepName, asyncio.Task[None]], held: Sequence[float]) -> None:
        """Wait until a queue's step has ended, `wake` is set, or the back-off of an idle queue has passed.

        A step that is `held` until a time of the event loop ends the wait too.
        """
        wake = asyncio.create_task(self.wake.wait(), name="update-wake")
        due = self._pending.next_due(besides=tasks)
        left = [until - asyncio.get_running_loop().time() for until in held]
        if due is not None:
            left.append((due - self._context.clock()).total_seconds())
        seconds = max(0.0, min(left)) if left else None
        try:
            await asyncio.wait({wake, *tasks.values()}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            wake.cancel()

    async def _read(self) -> None:
        """Read the pending turns that are not held yet."""
        if not self._has_to_read():
            return
        # Cleared before reading: a turn that is announced during the query is then read by the next one.
        self.wake.clear()
        if not await self._pending.read(self._context.store.updates, self._claim):
            raise Fenced

    async def _defer(self) -> None:
        """Ask which turns wait for others, and wake those who wait for the newly deferred ones."""
        for turn_id in await self._pending.defer():
            self._context.recorded(self.user_id, turn_id, self._pending.updates[turn_id])

    def _has_to_read(self) -> bool:
        """Tell whether `wake` is set, or a queue is empty while the last query did not return all pending turns."""
        return self.wake.is_set() or self._pending.are_short()

    def _held(self, name: StepName, turn: Turn) -> float | None:
        """Return until when (of the loop's time) the step waits for the first try of the one whose results it takes.

        None if it need not wait.
        """
        turn_id, taken = turn.message.turn_id, _TAKES_ALONG.get(name)
        before = self._pending.first(taken) if taken is not None else None
        if before is None or before[0] != turn_id or before[1].tries or not before[1].is_due(self._context.clock()):
            return None
        now = asyncio.get_running_loop().time()
        until = self._held_until.setdefault(turn_id, now + TOGETHER_SECONDS)
        return until if now < until else None

    async def _run_step(self, name: StepName, turn: Turn) -> None:
        turn_id = turn.message.turn_id
        given = self._pending.updates[turn_id]
        step = given.steps[name]

        async def save(update: Update) -> None:
            nonlocal given
            if not self._context.slots[name].locked():  # others need the slot, which this step holds
                await self._give_way()
            if name in _TAKES_ALONG.values():
                await self._record_late()  # what the turns before have taught is done before this turn's is planned
            await self._record(name, step, turn, _learned(given, update))
            given = update

        async with self._context.slots[name]:
            try:
                learned = _learned(given, await self._context.steps[name].run(turn, given, save))
                ended = Step(status="done", tries=step.tries + 1, attempts=step.attempts)
            except Fenced:
                raise
            except Exception as error:
                learned, ended = {}, self._after(step, name, turn_id, error)
        if self._is_recorded_along(name, ended, turn_id):
            await self._keep_for_later(name, ended, turn_id, learned)
        else:
            await self._record(name, ended, turn, learned)
        logger.debug(
            "update step ended",
            extra={"action": "step_ended", "step": name, "user_id": self.user_id, "turn_id": turn_id}
            | {"status": ended.status, "tries": ended.tries},
        )

    def _after(self, step: Step, name: StepName, turn_id: str, error: Exception) -> Step:
        """Return the step after a try that raised `error`.

        This is the boundary where every error becomes a status and a reason that people can read.
        """
        known = isinstance(error, RecollectError)
        after = after_failure(
            step,
            reason=error.message if known else f"It ended in a {type(error).__name__}; the log has the details.",
            outage=is_outage(error),
            now=self._context.clock(),
            jitter=random.random(),
        )
        logger.warning(
            "update step failed",
            extra={"action": "step_failed", "step": name, "turn_id": turn_id, "status": after.status}
            | {"error": type(error).__name__, "tries": after.tries},
            exc_info=None if known else error,
        )
        return after

    def _is_recorded_along(self, name: StepName, ended: Step, turn_id: str) -> bool:
        """Tell whether the step is done, and the one that takes its results along is held for it, and begins now."""
        until = self._held_until.get(turn_id, 0.0)
        return name in _TAKES_ALONG.values() and ended.status == "done" and asyncio.get_running_loop().time() < until

    async def _keep_for_later(self, name: StepName, ended: Step, turn_id: str, learned: Mapping[str, Any]) -> None:
        """Leave the step's end to the next record of the turn, at most for `TOGETHER_SECONDS`.

        After a kill before that the step runs once more, as after one between a step and its record.
        """
        async with self._writing:
            update = self._pending.updates[turn_id]
            self._pending.updates[turn_id] = replace(update, **learned, steps={**update.steps, name: ended})
            self._unrecorded[turn_id] = _Unrecorded(name, asyncio.get_running_loop().time() + TOGETHER_SECONDS)

    async def _record_late(self, now: float = math.inf) -> None:
        """Record the steps whose record waits for another's, and may do so no longer than `now`."""
        for turn_id in [turn_id for turn_id, waits in self._unrecorded.items() if waits.until <= now]:
            async with self._writing:
                if turn_id in self._unrecorded:  # else another record came first
                    await self._write(
                        self._unrecorded[turn_id].name, self._pending.turns[turn_id], self._pending.updates[turn_id]
                    )

    async def _record(self, name: StepName, step: Step, turn: Turn, learned: Mapping[str, Any]) -> None:
        """Write the turn's update with this step and the fields that it changed; keep what other steps recorded."""
        # A turn's steps run in several queues at once, and the store writes an update whole: to read the held update,
        # change it and write it must not interleave. The generation refuses the write of a process that lost its claim.
        async with self._writing:
            update = self._pending.updates[turn.message.turn_id]
            await self._write(name, turn, replace(update, **learned, steps={**update.steps, name: step}))

    async def _write(self, name: StepName, turn: Turn, update: Update) -> None:
        """Write the update after a change of the step `name`; the caller holds `_writing`."""
        turn_id = turn.message.turn_id
        if not await self._claim.record(turn, update):
            await self._let_go(name, turn)
            raise Fenced
        self._pending.updates[turn_id] = update
        self._unrecorded.pop(turn_id, None)
        self._context.recorded(self.user_id, turn_id, update)
        if update.status != "pending":
            self._pending.end(turn_id)
            self._held_until.pop(turn_id, None)

    async def _let_go(self, name: StepName, turn: Turn) -> None:
        """Take back what the step wrote if its record was refused because the turn was deleted.

        Take back what a step wrote whose end that record should have held too.
        """
        if await self._context.store.conversations.turn(user_id=self.user_id, turn_id=turn.message.turn_id) is None:
            await self._context.steps[name].take_back(turn)
            unrecorded = self._unrecorded.get(turn.message.turn_id)
            if unrecorded is not None and unrecorded.name != name:
                await self._context.steps[unrecorded.name].take_back(turn)


def _learned(given: Update, returned: Update) -> dict[str, Any]:
    """Return the fields that a step changed: the others may have been changed by another step meanwhile."""
    names = (item.name for item in fields(Update) if item.name != "steps")
    return {name: getattr(returned, name) for name in names if getattr(returned, name) != getattr(given, name)}
