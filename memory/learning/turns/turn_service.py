"""Turn service: takes back what a turn taught, or has it learned from again, when a person asks for that.

The request is written into the turn's update, and its facts step does it in the user's queue, so that it survives a
kill.
"""

from dataclasses import asdict, replace
from typing import Any

from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.learning.facts_step import FactsStep
from recollect.memory.learning.previewing import again, applied, check_as_shown
from recollect.memory.learning.turns.explaining import Explaining
from recollect.memory.learning.undoing import plan_undo
from recollect.memory.ports.store import Store
from recollect.memory.updates.updater import Updater
from recollect.memory.values.errors import (
    FactsChanged,
    InvalidRequest,
    NotFound,
    PreviewOutdated,
    Problem,
    UpdatePending,
)
from recollect.memory.values.frozen import frozen
from recollect.memory.values.preview import Preview
from recollect.memory.values.times import Clock, iso
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Left, Step, Undo, Update

_TRIES = 10


@frozen
class TurnService:
    """Handles turns for people. A call waits up to `wait_seconds` for a turn's update to end.

    Raises:
        NotFound: the user has no such turn.
        UpdatePending: the turn is unfinished, or its update has not ended in time.
        StoreUnavailable: from any call.
    """

    store: Store
    points: IndexOutbox
    updater: Updater
    learning: FactsStep
    clock: Clock
    wait_seconds: float
    explaining: Explaining

    async def explain(self, user_id: str, turn_id: str, *, agent_id: str | None = None) -> dict[str, Any]:
        """Return why the turn answered as it did and what it taught; see `Explaining.explain`."""
        return await self.explaining.explain(user_id, turn_id, agent_id=agent_id)

    async def undo(self, user_id: str, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        """Take back all that the turn taught: {"turn_id", "undone": [CHANGE, …], "left": [LEFT, …]}.

        LEFT is {"fact_id", "key", "reason"}. With `force`, leave and name what has changed since. Return the first
        result again if the turn is undone already.

        Raises:
            FactsChanged: facts have changed since; nothing was done.
        """
        for _ in range(_TRIES):
            turn, update = await self._ended(user_id, turn_id)
            if update.undo is not None and update.undo.is_done:
                return _undone(turn_id, update.undo)
            now = self.clock()
            made = await plan_undo(self.store.facts, turn, update, now=now)
            if made.left and not force:
                raise FactsChanged(details=_details(made.left))
            wish = Undo(at=now, force=force)
            if made.is_nothing:
                return _undone(turn_id, wish)
            if not await self._wish(turn, replace(update, undo=wish, preview=update.voided)):
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
        """Learn from the turn again, by `model` if named: {"turn_id", "update"}. It adds and updates, never removes.

        Raises:
            InvalidRequest: the provider lists no such model.
            ModelUnavailable: the provider does not say which models it lists.
        """
        for _ in range(_TRIES):
            turn, update = await self._ended(user_id, turn_id)
            await self._check_model(model)
            wished = again(update, model=model)
            if await self._wish(turn, wished):
                return await self._learned(user_id, turn_id, wished)
        raise UpdatePending(turn_id=turn_id)

    async def preview_learning(self, user_id: str, turn_id: str, *, model: str | None = None) -> dict[str, Any]:
        """Return what learning again would change and refuse now, and keep it to be applied. Change no fact.

        A turn has one preview: the next takes its place. Raise as `learn` does.
        """
        turn, update = await self._ended(user_id, turn_id)
        await self._check_model(model)
        preview = await self.learning.preview(turn, model=model)
        # A conditional write: what the model was shown may be out of date if the turn has changed since.
        if not await self._rewrite(turn, replace(update, preview=preview)):
            raise UpdatePending("The turn has changed meanwhile; ask for the difference again.", turn_id=turn_id)
        return _shown(turn_id, preview)

    async def apply_learning(self, user_id: str, turn_id: str, *, preview_id: str) -> dict[str, Any]:
        """Do what a preview of the turn showed, without asking a model: {"turn_id", "update"}.

        It is planned again first. Return the result again if the preview is applied already.

        Raises:
            NotFound: the turn has no such preview.
            PreviewOutdated: it has expired, or would do something else now; nothing was done.
        """
        for _ in range(_TRIES):
            turn, update = await self._ended(user_id, turn_id)
            preview = update.preview
            if preview is None or preview.id != preview_id:
                raise NotFound("There is no such preview of this turn; ask for the difference again.")
            if preview.state == "applied":
                return {"turn_id": turn_id, "update": update.as_json()}
            if not preview.is_open(self.clock()):
                raise PreviewOutdated
            made = await self.learning.plan_again(turn, preview)
            check_as_shown(preview, made)
            wished = applied(update, preview, made)
            if await self._wish(turn, wished):
                return await self._learned(user_id, turn_id, wished)
        raise UpdatePending(turn_id=turn_id)

    async def prompt(self, user_id: str, turn_id: str) -> dict[str, Any]:
        """Return what a model would be asked about the turn now: {"turn_id", "messages"}. Ask nobody."""
        turn = await self.store.conversations.turn(user_id=user_id, turn_id=turn_id)
        if turn is None:
            raise NotFound("There is no such turn of this user.")
        return {"turn_id": turn_id, "messages": await self.learning.prompt(turn)}

    async def _check_model(self, model: str | None) -> None:
        """Raise InvalidRequest if the provider lists no such `model`."""
        # An unknown name looks like an outage to the facts step, which would retry it for as long.
        if model is not None and not await self.learning.may_ask(model):
            raise InvalidRequest(problems=[Problem("model", "is none that the provider lists; see GET /v1/models")])

    async def _ended(self, user_id: str, turn_id: str) -> tuple[Turn, Update]:
        """Return the turn and its update, once that has ended; wait up to `wait_seconds`."""
        conversations = self.store.conversations
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

    async def _wish(self, turn: Turn, update: Update) -> bool:
        """Have the facts step run for the turn's new `update`; return False if the old one has changed meanwhile."""
        if not await self._rewrite(turn, replace(update, steps={**update.steps, "facts": Step()})):
            return False
        self.updater.notify(turn.message.user_id)
        return True

    async def _rewrite(self, turn: Turn, update: Update) -> bool:
        """Write the ended turn's update; return False if a worker or another request has changed it meanwhile."""
        return await self.store.conversations.rewrite(turn, result=turn.result or {}, update=update)

    async def _learned(self, user_id: str, turn_id: str, wished: Update) -> dict[str, Any]:
        """Wait until the facts step has done what was `wished`; return the turn's update for the HTTP contract."""
        ended = await self.updater.wait_ended(user_id=user_id, turn_id=turn_id, seconds=self.wait_seconds)
        await self.points.sync_soon(user_id)
        return {"turn_id": turn_id, "update": (ended or wished).as_json()}


def _shown(turn_id: str, preview: Preview) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "model": preview.model,
        "changes": [change.as_json() for change in preview.changes],
        "refused": [asdict(refused) for refused in preview.refused],
        "dry_run": True,
        "preview_id": preview.id,
        "expires_at": iso(preview.expires_at),
    }


def _undone(turn_id: str, undo: Undo) -> dict[str, Any]:
    return {
        "turn_id": turn_id,
        "undone": [change.as_json() for change in undo.changes],
        "left": _details(undo.left),
    }


def _details(left: tuple[Left, ...]) -> list[dict[str, str | None]]:
    return [asdict(one) for one in left]
