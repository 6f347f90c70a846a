"""Retries failed updates: their failed steps become pending again, with all attempts left."""

from collections import Counter
from dataclasses import asdict, replace

from recollect.memory.ports.store import Store
from recollect.memory.updates.updater import Updater
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Step, Update


@frozen
class Replayed:
    """The number of failed updates that were retried, and how many of them are done, failed again or still pending."""

    replayed: int
    done: int
    failed: int
    pending: int

    def as_json(self) -> dict[str, int]:
        """Return the JSON of the HTTP contract."""
        return asdict(self)


async def replay_failed(store: Store, updater: Updater, *, seconds: float) -> Replayed:
    """Retry all failed updates, and wait up to `seconds` in all for them to end.

    Raises:
        StoreUnavailable: the retries that were begun go on.
    """
    failed = [turn async for turns in store.updates.failed() for turn in turns]
    replayed = [turn for turn in failed if await _begin_again(store, turn)]
    for user_id in dict.fromkeys(turn.message.user_id for turn in replayed):
        updater.notify(user_id)
    updates = await updater.wait_all_ended(replayed, seconds=seconds)
    ends = Counter(update.status if update is not None else "done" for update in updates)
    return Replayed(len(replayed), ends["done"] + ends["skipped"], ends["failed"], ends["pending"])


def begun_again(update: Update) -> Update:
    """Return the update with its failed steps reset to pending, without attempts."""
    steps = {name: Step() if step.status == "failed" else step for name, step in update.steps.items()}
    return replace(update, steps=steps)


async def _begin_again(store: Store, turn: Turn) -> bool:
    """Write the update with its failed steps reset. Return False if somebody else wrote the turn first."""
    if turn.update is None or turn.result is None:
        return False
    return await store.conversations.rewrite(turn, result=turn.result, update=begun_again(turn.update))
