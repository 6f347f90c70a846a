"""Learning from several turns of a thread in one call: which turns wait for others, and which go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.documents import Documents
from memory.mem_config import MemoryConfig
from memory.trivial import is_trivial
from memory.turn import Turn
from memory.update import Update
from memory.user_work import Resting
from memory.window import read_window

MOST_PENDING = 1_000
"""How many pending turns of a user are looked at for those that go together."""


@dataclass(frozen=True, slots=True)
class Batching:
    """LEARN_EVERY turns of a thread are learned from at once; until then the window shows them verbatim."""

    documents: Documents
    config: MemoryConfig

    async def resting(self, turns: Sequence[tuple[Turn, Update]], *, now: datetime) -> Resting:
        """Those of a user's pending turns that wait for more of their thread, and until when (None: for more alone)."""
        if self.config.learn_every == 1:
            return {}
        threads: dict[str, list[Turn]] = {}
        for turn, update in turns:
            if _may_wait(update):
                threads.setdefault(turn.message.thread_id, []).append(turn)
        resting: dict[str, datetime | None] = {}
        for waiting in threads.values():
            until = self._idle_end(waiting)
            if await self._is_ripe(waiting) or (until is not None and until <= now):
                continue
            resting |= {turn.message.turn_id: until for turn in waiting}
        return resting

    async def companions(self, turn: Turn, update: Update) -> list[Turn]:
        """The turns of the same thread, after this one, that are to be learned from in the same call."""
        if self.config.learn_every == 1 or not _may_wait(update):
            return []
        message = turn.message
        pending = await self.documents.updates.pending(message.user_id, limit=MOST_PENDING)
        found = [
            other
            for other in pending
            if other.message.thread_id == message.thread_id and other.message.position > message.position
            if other.update is not None and _may_wait(other.update)
        ]
        telling = [other for other in found if not is_trivial(other.message.content)]
        return telling[: self.config.learn_every - 1]

    async def _is_ripe(self, waiting: Sequence[Turn]) -> bool:
        """Whether enough turns wait, or the oldest has left the window, or their thread was archived."""
        if len(waiting) >= self.config.learn_every:
            return True
        oldest = min(turn.message.position for turn in waiting)
        scope = waiting[0].message.scope
        window = await read_window(
            self.documents.conversations, scope, turns=self.config.window, tokens=self.config.window_tokens
        )
        if not window or window[0].user.position > oldest:
            return True
        record = await self.documents.threads.record(scope)
        return record is not None and record.archived_to >= oldest

    def _idle_end(self, waiting: Sequence[Turn]) -> datetime | None:
        seconds = self.config.learn_idle_seconds
        if not seconds:
            return None
        newest = max(turn.reply.created_at for turn in waiting if turn.reply is not None)
        return newest + timedelta(seconds=seconds)


def _may_wait(update: Update) -> bool:
    """Whether the turn's learning may wait: not begun, and nobody asked for it."""
    step = update.steps.get("facts")
    is_fresh = step is not None and step.status == "pending" and step.tries == 0
    return is_fresh and not (update.planned or update.writes or update.learned or update.undo)
