"""The work on one user's pending updates, while this process holds their claim.

Each kind of step has a lane of its own, so that a step that waits never holds up another kind; within a lane the user's
turns go in the order of their commits. The work ends when nothing is due, and says when to come back.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from memory.documents import Claim, Documents
from memory.errors import RecollectError, StoreUnavailable, is_outage
from memory.times import Clock
from memory.turn import Turn
from memory.update import Step, StepName, Update, after_failure

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=15)
BATCH = 100
RETRY = timedelta(seconds=0.5)
"""After how long to look again where another process holds the claim, or the store cannot be reached."""

REST = timedelta(hours=1)
"""After how long to look again at turns that wait for more of their thread; a new turn comes first."""

Save = Callable[[Update], Awaitable[None]]
Resting = Mapping[str, datetime | None]
"""Turns (by id) that wait for others before a step of theirs begins, and until when at the latest."""


class StepWork(Protocol):
    """The work of one kind of step."""

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Do the step for a committed turn and return the update with what it learned (not the step's own status).

        Running it twice must have the effect of running it once; `save` first records an intermediate state durably.
        """
        ...

    async def resting(self, turns: Sequence[tuple[Turn, Update]]) -> Resting:
        """Those of the user's turns whose step is pending that should wait for others."""
        ...

    async def take_back(self, turn: Turn) -> None:
        """The turn was deleted while its step ran: remove what the step may have left behind."""
        ...


class Fenced(RecollectError):
    """Another process has taken over this user's updates."""

    code = "fenced"


class Owner(Protocol):
    """What the work needs of the updater that owns it."""

    documents: Documents
    steps: Mapping[StepName, StepWork]
    clock: Clock
    owner: str
    slots: Mapping[StepName, asyncio.Semaphore]

    def recorded(self, user_id: str, turn_id: str) -> None:
        """A step of this turn was recorded."""
        ...


class UserWork:
    """Works off one user's updates. `poke` says that there may be more; it counts until `run` has ended."""

    def __init__(self, owner: Owner, user_id: str) -> None:
        self.user_id = user_id
        self.poked = asyncio.Event()
        self._owner = owner
        self._claim: Claim | None = None
        self._turns: dict[str, Turn] = {}
        self._updates: dict[str, Update] = {}
        self._resting: dict[StepName, Resting] = {}
        self._more = True
        self._writing = asyncio.Lock()

    def held(self, turn_id: str) -> Update | None:
        """The turn's update as this work last recorded it, if it holds the turn."""
        return self._updates.get(turn_id)

    def resting_steps(self, turn_id: str) -> frozenset[StepName]:
        """Those of the turn's steps that wait for other turns."""
        return frozenset(name for name, resting in self._resting.items() if turn_id in resting)

    async def run(self) -> datetime | None:
        """Work until nothing is due; then when to come back, or None where nothing is left."""
        updates = self._owner.documents.updates
        try:
            claim = await updates.claim(self.user_id, owner=self._owner.owner, lease=LEASE, now=self._owner.clock())
            if claim is None:
                return self._retry()
            self._claim = claim
            try:
                return await self._run_lanes()
            finally:
                self._claim = None
                await updates.release(claim)
        except Fenced:
            logger.warning("fenced out by a later owner", extra={"action": "fenced"})
        except StoreUnavailable:
            logger.warning("updates wait for the document store", extra={"action": "updates_wait"})
        return self._retry()

    def _retry(self) -> datetime:
        """When to look again. What was announced until now waits for that too, or there would be no pause."""
        self.poked.clear()
        return self._owner.clock() + RETRY

    async def renew(self) -> bool:
        """Extend the claim. False if it was lost: then the work must end."""
        claim = self._claim
        if claim is None or await self._owner.documents.updates.renew(claim, lease=LEASE, now=self._owner.clock()):
            return True
        return self._claim is not claim  # given up meanwhile, because the work is done

    async def _run_lanes(self) -> datetime | None:
        lanes: dict[StepName, asyncio.Task[None]] = {}
        try:
            while True:
                await self._read()
                await self._let_rest()
                for name in self._owner.steps:
                    turn = None if name in lanes else self._due(name)
                    if turn is not None:
                        lanes[name] = asyncio.create_task(self._run_step(name, turn), name=f"update-{name}")
                if not lanes:
                    if self._has_to_read():
                        continue
                    return self._next_due()
                await self._wait_for_one(lanes)
                for name, lane in list(lanes.items()):
                    if lane.done():
                        del lanes[name]
                        lane.result()
        finally:
            for lane in lanes.values():
                lane.cancel()
            await asyncio.gather(*lanes.values(), return_exceptions=True)

    async def _wait_for_one(self, lanes: Mapping[StepName, asyncio.Task[None]]) -> None:
        """Wait until a lane is through, something new is announced, or another lane's back-off has passed."""
        poke = asyncio.create_task(self.poked.wait(), name="update-poke")
        due = self._next_due(besides=lanes)
        seconds = max(0.0, (due - self._owner.clock()).total_seconds()) if due is not None else None
        try:
            await asyncio.wait({poke, *lanes.values()}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            poke.cancel()

    async def _read(self) -> None:
        """Read what is pending, beyond what is held already."""
        if not self._has_to_read():
            return
        self.poked.clear()
        limit = len(self._updates) + BATCH
        found = await self._owner.documents.updates.pending(self.user_id, limit=limit)
        self._more = len(found) == limit
        for turn in found:
            turn_id = turn.message.turn_id
            if turn.update is not None and turn_id not in self._updates:
                self._turns[turn_id], self._updates[turn_id] = turn, turn.update

    async def _let_rest(self) -> None:
        """Ask each kind of step which of its turns should wait for others, and tell who waits for these."""
        for name, step in self._owner.steps.items():
            pending = [
                (self._turns[turn_id], update)
                for turn_id, update in self._updates.items()
                if name in update.steps and update.steps[name].status == "pending"
            ]
            known = self._resting.get(name, {})
            self._resting[name] = await step.resting(pending)
            for turn_id in self._resting[name].keys() - known.keys():
                self._owner.recorded(self.user_id, turn_id)

    def _has_to_read(self) -> bool:
        """Whether something new was announced, or a lane is through with a reading that did not show all."""
        return self.poked.is_set() or (self._more and any(self._pending(name) is None for name in self._owner.steps))

    def _pending(self, name: StepName) -> tuple[str, Step] | None:
        """The oldest turn whose step of this kind is pending and rests not; the later ones wait for it."""
        resting = self._resting.get(name, {})
        for turn_id, update in self._updates.items():
            step = update.steps.get(name)
            if step is not None and step.status == "pending" and turn_id not in resting:
                return turn_id, step
        return None

    def _due(self, name: StepName) -> Turn | None:
        pending = self._pending(name)
        if pending is None or not pending[1].is_due(self._owner.clock()):
            return None
        return self._turns[pending[0]]

    def _next_due(self, *, besides: Container[StepName] = ()) -> datetime | None:
        """When the next step comes due: the end of a back-off, or of a rest."""
        names: list[StepName] = [name for name in self._owner.steps if name not in besides]
        pending = [self._pending(name) for name in names]
        due = [found[1].due_at for found in pending if found and found[1].due_at]
        rest = self._owner.clock() + REST
        for name in names:
            resting: Resting = self._resting.get(name, {})
            due += [until or rest for until in resting.values()]
        return min(due, default=None)

    async def _run_step(self, name: StepName, turn: Turn) -> None:
        turn_id = turn.message.turn_id
        given = self._updates[turn_id]
        step = given.steps[name]

        async def save(update: Update) -> None:
            nonlocal given
            await self._record(name, step, turn, _learned(given, update))
            given = update

        async with self._owner.slots[name]:
            try:
                learned = _learned(given, await self._owner.steps[name].run(turn, given, save))
                ended = Step(status="done", tries=step.tries + 1, attempts=step.attempts)
            except Fenced:
                raise
            except Exception as error:
                learned, ended = {}, self._after(step, name, turn_id, error)
        await self._record(name, ended, turn, learned)

    def _after(self, step: Step, name: StepName, turn_id: str, error: Exception) -> Step:
        """The step after a try that raised: the boundary where every error becomes something that anyone can see."""
        known = isinstance(error, RecollectError)
        after = after_failure(
            step,
            reason=error.message if known else f"{type(error).__name__}; the log has the details.",
            outage=is_outage(error),
            now=self._owner.clock(),
            jitter=random.random(),
        )
        logger.warning(
            "update step failed",
            extra={"action": "step_failed", "step": name, "turn_id": turn_id, "status": after.status}
            | {"error": type(error).__name__, "tries": after.tries},
            exc_info=None if known else error,
        )
        return after

    async def _record(self, name: StepName, step: Step, turn: Turn, learned: Mapping[str, Any]) -> None:
        """Write the update as it is now, with this lane's step and what it learned: the other lanes' stay."""
        turn_id, claim = turn.message.turn_id, self._claim
        async with self._writing:
            update = self._updates[turn_id]
            update = replace(update, **learned, steps={**update.steps, name: step})
            if claim is None or not await self._owner.documents.updates.record(
                turn, update, generation=claim.generation
            ):
                await self._let_go(name, turn)
                raise Fenced
            self._updates[turn_id] = update
            self._owner.recorded(self.user_id, turn_id)
            if update.status != "pending":
                del self._updates[turn_id], self._turns[turn_id]

    async def _let_go(self, name: StepName, turn: Turn) -> None:
        """The record was refused: if the turn was deleted meanwhile, what the step did must go too."""
        if await self._owner.documents.conversations.turn(user_id=self.user_id, turn_id=turn.message.turn_id) is None:
            await self._owner.steps[name].take_back(turn)


def _learned(given: Update, returned: Update) -> dict[str, Any]:
    """The fields that a step changed; what it left alone another lane may have changed meanwhile."""
    names = (item.name for item in fields(Update) if item.name != "steps")
    return {name: getattr(returned, name) for name in names if getattr(returned, name) != getattr(given, name)}
