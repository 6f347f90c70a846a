"""The summary step of an update: takes in what left the window, and archives a thread that has grown long."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memory.archive import Archive, ThreadSizes
from memory.documents import Documents
from memory.mem_config import MemoryConfig
from memory.rolling_summary import RollingSummaries
from memory.summarizer import Summarizer
from memory.thread_record import ThreadRecord
from memory.times import Clock
from memory.turn import Turn
from memory.update import Update
from memory.user_work import Resting, Save


class Points(Protocol):
    """What makes the index follow the documents."""

    def notify(self, user_id: str) -> None:
        """Follow this user's documents in the background."""
        ...


@dataclass(frozen=True)
class SummaryStep:
    """Implements `StepWork`. Where a summary ends is recorded with it, so that twice is once.

    `points`, told of each run, follow an archived thread's summary at once, and not only with their next sweep.
    """

    documents: Documents
    summarizer: Summarizer
    config: MemoryConfig
    clock: Clock
    points: Points | None = None
    sizes: ThreadSizes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", ThreadSizes(self.documents))

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Summarise and archive as far as this turn calls for it; see `StepWork.run`."""
        scope, every = turn.message.scope, self.config.summary_every
        summaries = RollingSummaries(self.documents, self.summarizer, self.config, self.clock)
        try:
            if every:
                before = await summaries.left_window(turn)
                await summaries.take_in(scope, before=before, at_least=every)
            if self.config.archive_tokens:
                await self._archive(Archive(self.documents, summaries, self.clock), turn)
        finally:
            if self.points is not None:
                self.points.notify(scope.user_id)
        return update

    async def resting(self, turns: Sequence[tuple[Turn, Update]]) -> Resting:
        """No turn waits for another."""
        return {}

    async def take_back(self, turn: Turn) -> None:
        """The turn was deleted: where its thread was, the record goes too."""
        scope = turn.message.scope
        if await self.documents.conversations.last_position(scope) == 0:
            await self.documents.threads.delete(scope)

    async def _archive(self, archive: Archive, turn: Turn) -> None:
        """Archive the thread up to this turn if what came since the last archive has too many tokens."""
        scope, to = turn.message.scope, turn.message.position + 1
        record = await self.documents.threads.record(scope)
        archived_to = record.archived_to if record is not None else 0
        if archived_to < to and await self.sizes.tokens(scope, after=archived_to, to=to) > self.config.archive_tokens:
            await archive.begin(scope, to=to)
        await archive.finish(scope)


def summary_is_owed(record: ThreadRecord | None, *, window_from: int, position: int, config: MemoryConfig) -> bool:
    """Whether the turn at `position` may owe its thread a summary: true rather once too often than never.

    `window_from` is the position of the oldest message that the window showed to the turn, `position` itself where it
    showed none. Positions count unfinished turns too, and a window may have been asked for that is not the configured
    one: `SummaryStep` looks closely.
    """
    if config.archive_tokens:
        return True
    if not config.summary_every:
        return False
    summarised_to = record.summarised_to if record is not None else 0
    # A turn takes two positions. The window may have shown more turns than the configured one would.
    outside = max(window_from - 1 - summarised_to, position - 1 - summarised_to - 2 * config.window) // 2
    return outside + 1 >= config.summary_every
