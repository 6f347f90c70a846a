"""The summary step of an update: summarises turns that left the window, and archives a thread that has grown long."""

from collections.abc import Sequence
from dataclasses import field

from typing_extensions import override

from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.ports.store import Store
from recollect.memory.ports.summariser import Summariser
from recollect.memory.threads.archive import Archive, ThreadSizes
from recollect.memory.threads.rolling_summary import RollingSummaries
from recollect.memory.updates.step_work import Deferred, Save, StepWork
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import Clock
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Update


@frozen
class SummaryStep(StepWork):
    """Implements `StepWork`. A summary is stored with the position up to which it goes: a second run adds nothing.

    `points` is notified after each run, so that an archived thread's summary is indexed before the next sweep.
    """

    store: Store
    summariser: Summariser
    config: MemoryConfig
    clock: Clock
    points: IndexOutbox | None = None
    sizes: ThreadSizes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", ThreadSizes(self.store))

    @override
    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Summarise and archive as far as `turn` requires it; see `StepWork.run`."""
        scope, every = turn.message.scope, self.config.summary_every
        summaries = RollingSummaries(self.store, self.summariser, self.config, self.clock)
        try:
            if every:
                before = await summaries.left_window(turn)
                await summaries.take_in(scope, before=before, at_least=every)
            if self.config.archive_tokens:
                await self._archive(Archive(self.store, summaries, self.clock), turn)
        finally:
            if self.points is not None:
                self.points.notify(scope.user_id)
        return update

    @override
    async def deferred(self, turns: Sequence[tuple[Turn, Update]]) -> Deferred:
        """Defer no turn."""
        return {}

    @override
    async def take_back(self, turn: Turn) -> None:
        """Remove the thread's record if the thread was deleted with the turn."""
        scope = turn.message.scope
        if await self.store.conversations.last_position(scope) == 0:
            await self.store.threads.delete(scope)

    async def _archive(self, archive: Archive, turn: Turn) -> None:
        """Archive the thread up to `turn` if its messages since the last archive have too many tokens."""
        scope, to = turn.message.scope, turn.message.position + 1
        record = await self.store.threads.record(scope)
        archived_to = record.archived_to if record is not None else 0
        if archived_to < to and await self.sizes.tokens(scope, after=archived_to, to=to) > self.config.archive_tokens:
            await archive.begin(scope, to=to)
        await archive.finish(scope)


def summary_is_owed(record: ThreadRecord | None, *, window_from: int, position: int, config: MemoryConfig) -> bool:
    """Tell whether the turn at `position` may need the summary step; true in doubt.

    `window_from` is the position of the oldest message that the window showed to the turn, or `position` if it showed
    none. This is an estimate, because positions count unfinished turns too, and the turn may have asked for another
    window than the configured one. `SummaryStep` decides exactly.
    """
    if config.archive_tokens:
        return True
    if not config.summary_every:
        return False
    summarised_to = record.summarised_to if record is not None else 0
    # A turn takes two positions. The window may have shown more turns than the configured one would.
    outside = max(window_from - 1 - summarised_to, position - 1 - summarised_to - 2 * config.window) // 2
    return outside + 1 >= config.summary_every
