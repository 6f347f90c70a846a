"""What a person can do with what a turn taught: take it back, or have the turn learned from again.

A wish is written into the turn's update and done by its facts step, in the user's lane, so that it survives a kill.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from memory.documents import Documents
from memory.errors import FactsChanged, NotFound, UpdatePending
from memory.owed_points import OwedPoints
from memory.reconciliation import Plan
from memory.times import Clock
from memory.turn import Turn
from memory.undoing import plan_undo
from memory.update import Left, Step, Undo, Update
from memory.updater import Updater

_TRIES = 10


class Rehearsal(Protocol):
    """What can learn from a turn without storing anything."""

    async def rehearse(self, turn: Turn, *, model: str | None = None) -> tuple[Plan, str]:
        """What learning from the turn again would do, and which model says so."""
        ...


@dataclass(frozen=True, slots=True)
class TurnBook:
    """The turns of users, as people handle them. A call waits up to `wait_seconds` for a turn's update to end.

    Raises:
        NotFound: there is no such turn, or it is another user's.
        UpdatePending: the turn is unfinished, or its update has not ended in time.
        StoreUnavailable: from any call.
    """

    documents: Documents
    points: OwedPoints
    updater: Updater
    learning: Rehearsal
    clock: Clock
    wait_seconds: float

    async def undo(self, user_id: str, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        """Take back all that the turn taught: {"turn_id", "undone": [CHANGE, …], "left": [LEFT, …]}.

        LEFT is {"fact_id", "key", "reason"}. With `force` what has changed since is left as it is, and named. Undone
        once, the same is answered again.

        Raises:
            FactsChanged: facts have changed since; nothing was done.
        """
        for _ in range(_TRIES):
            turn, update = await self._ended(user_id, turn_id)
            if update.undo is not None and update.undo.is_done:
                return _undone(turn_id, update.undo)
            now = self.clock()
            made = await plan_undo(self.documents.facts, turn, update, now=now)
            if made.left and not force:
                raise FactsChanged(details=_details(made.left))
            wish = Undo(at=now, force=force)
            if not (made.left or made.steps):
                return _undone(turn_id, wish)
            if not await self._wish(turn, update, lambda update, wish=wish: replace(update, undo=wish)):
                continue
            _, update = await self._ended(user_id, turn_id)
            await self.points.sync_soon(user_id)
            if update.undo is None or not update.undo.done:
                raise UpdatePending("The undo has not been done; the turn's update says why.", turn_id=turn_id)
            if not update.undo.is_done:
                raise FactsChanged(details=_details(update.undo.left))
            return _undone(turn_id, update.undo)
        raise UpdatePending(turn_id=turn_id)

    async def learn(self, user_id: str, turn_id: str, *, model: str | None = None) -> dict[str, Any]:
        """Learn from the turn again, by `model` if named: {"turn_id", "update"}. It adds and updates, never removes."""

        def again(update: Update) -> Update:
            return replace(update, planned=False, learned=update.learned + 1, wanted_model=model, undo=None, anew=False)

        for _ in range(_TRIES):
            turn, update = await self._ended(user_id, turn_id)
            if await self._wish(turn, update, again):
                ended = await self.updater.wait_ended(user_id=user_id, turn_id=turn_id, seconds=self.wait_seconds)
                await self.points.sync_soon(user_id)
                return {"turn_id": turn_id, "update": (ended or again(update)).as_json()}
        raise UpdatePending(turn_id=turn_id)

    async def rehearse(self, user_id: str, turn_id: str, *, model: str | None = None) -> dict[str, Any]:
        """What learning again would change now, and what it would refuse; nothing is stored."""
        turn, _ = await self._ended(user_id, turn_id)
        plan, name = await self.learning.rehearse(turn, model=model)
        return {
            "turn_id": turn_id,
            "model": name,
            "changes": [asdict(change) for change in plan.changes],
            "refused": [asdict(refused) for refused in plan.refused],
            "dry_run": True,
        }

    async def _ended(self, user_id: str, turn_id: str) -> tuple[Turn, Update]:
        """The turn, once its update has ended."""
        conversations = self.documents.conversations
        turn = await conversations.turn(user_id=user_id, turn_id=turn_id)
        if turn is not None and turn.update is not None and turn.update.status == "pending":
            await self.updater.wait_ended(user_id=user_id, turn_id=turn_id, seconds=self.wait_seconds)
            turn = await conversations.turn(user_id=user_id, turn_id=turn_id)
        if turn is None:
            raise NotFound("There is no such turn of this user.")
        if turn.update is None:
            raise UpdatePending("The turn is unfinished: it has no reply yet, and taught nothing.", turn_id=turn_id)
        if turn.update.status == "pending":
            raise UpdatePending(turn_id=turn_id)
        return turn, turn.update

    async def _wish(self, turn: Turn, update: Update, change: Callable[[Update], Update]) -> bool:
        """Write a wish for the facts step into the ended update; False where that has changed meanwhile."""
        wished = replace(change(update), steps={**update.steps, "facts": Step()})
        if not await self.documents.conversations.rewrite(turn, result=turn.result or {}, update=wished):
            return False
        self.updater.notify(turn.message.user_id)
        return True


def _undone(turn_id: str, undo: Undo) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "undone": [asdict(change) for change in undo.changes],
        "left": _details(undo.left),
    }


def _details(left: tuple[Left, ...]) -> list[dict[str, str | None]]:
    return [asdict(one) for one in left]
