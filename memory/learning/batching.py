"""Batching: defers turns of a thread until enough of them wait, and selects those that one call learns from."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from recollect.memory.language.trivial import is_trivial
from recollect.memory.ports.store import Store
from recollect.memory.threads.window import read_window
from recollect.memory.updates.step_work import Deferred
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Update

MOST_PENDING = 1_000
"""At most this many of a user's pending turns are searched for companions."""


@frozen
class Batching:
    """Groups LEARN_EVERY turns of a thread into one call. Until the call, the window shows these turns verbatim."""

    store: Store
    config: MemoryConfig

    async def deferred(self, turns: Sequence[tuple[Turn, Update]], *, now: datetime) -> Deferred:
        """Return until when each deferred turn waits, by turn id; None: until more turns of its thread wait."""
        if self.config.learn_every == 1:
            return {}
        threads: dict[str, list[Turn]] = {}
        for turn, update in turns:
            if _may_wait(update):
                threads.setdefault(turn.message.thread_id, []).append(turn)
        deferred: dict[str, datetime | None] = {}
        for waiting in threads.values():
            until = self._idle_end(waiting)
            if await self._is_ripe(waiting) or (until is not None and until <= now):
                continue
            deferred |= {turn.message.turn_id: until for turn in waiting}
        return deferred

    async def companions(self, turn: Turn, update: Update) -> list[Turn]:
        """Return the later turns of the same thread that the call about `turn` includes: at most LEARN_EVERY - 1."""
        if self.config.learn_every == 1 or not _may_wait(update):
            return []
        message = turn.message
        pending = await self.store.updates.pending(message.user_id, limit=MOST_PENDING)
        found = [
            other
            for other in pending
            if other.message.thread_id == message.thread_id and other.message.position > message.position
            if other.update is not None and _may_wait(other.update)
        ]
        telling = [other for other in found if not is_trivial(other.message.evidence)]
        return telling[: self.config.learn_every - 1]

    async def _is_ripe(self, waiting: Sequence[Turn]) -> bool:
        """Tell whether enough turns wait, the oldest has left the window, or their thread was archived."""
        if len(waiting) >= self.config.learn_every:
            return True
        oldest = min(turn.message.position for turn in waiting)
        scope = waiting[0].message.scope
        window = await read_window(
            self.store.conversations, scope, turns=self.config.window, tokens=self.config.window_tokens
        )
        if not window or window[0].user.position > oldest:
            return True
        record = await self.store.threads.record(scope)
        return record is not None and record.archived_to >= oldest

    def _idle_end(self, waiting: Sequence[Turn]) -> datetime | None:
        seconds = self.config.learn_idle_seconds
        if not seconds:
            return None
        newest = max(turn.reply.created_at for turn in waiting if turn.reply is not None)
        return newest + timedelta(seconds=seconds)


def _may_wait(update: Update) -> bool:
    """Tell whether the turn's learning may be deferred: it has not begun, and nobody has asked for it."""
    step = update.steps.get("facts")
    is_fresh = step is not None and step.status == "pending" and step.tries == 0
    return is_fresh and not (update.planned or update.writes or update.learned or update.undo)
