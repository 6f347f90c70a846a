"""Tries failed updates again: their failed steps become pending, with all their attempts before them."""

from collections import Counter
from dataclasses import asdict, dataclass, replace

from memory.documents import Documents
from memory.turn import Turn
from memory.update import Step, Update
from memory.updater import Updater


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many failed updates were tried again, and how many of them are done, failed again, or still at it."""

    replayed: int
    done: int
    failed: int
    pending: int

    def as_json(self) -> dict[str, int]:
        """As the HTTP contract shows it."""
        return asdict(self)


async def replay_failed(documents: Documents, updater: Updater, *, seconds: float) -> Replayed:
    """Try all failed updates again, and wait up to `seconds` in all for how they end.

    Raises:
        StoreUnavailable: those that were begun go on.
    """
    failed = [turn async for turns in documents.updates.failed() for turn in turns]
    replayed = [turn for turn in failed if await _begin_again(documents, turn)]
    for user_id in dict.fromkeys(turn.message.user_id for turn in replayed):
        updater.notify(user_id)
    updates = await updater.wait_all_ended(replayed, seconds=seconds)
    ends = Counter(update.status if update is not None else "done" for update in updates)
    return Replayed(len(replayed), ends["done"] + ends["skipped"], ends["failed"], ends["pending"])


def begun_again(update: Update) -> Update:
    """The update with its failed steps as they were at first."""
    steps = {name: Step() if step.status == "failed" else step for name, step in update.steps.items()}
    return replace(update, steps=steps)


async def _begin_again(documents: Documents, turn: Turn) -> bool:
    """False where somebody else was quicker."""
    if turn.update is None or turn.result is None:
        return False
    return await documents.conversations.rewrite(turn, result=turn.result, update=begun_again(turn.update))
