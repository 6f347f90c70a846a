"""Archives threads: closes a session with a summary that is found by meaning. Writing to the thread reopens it.

After a kill at any point it is finished later: the first write records both that the thread is archived and that its
summary is pending (`closing`), and a sweep that finds such a record goes on from it.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from recollect.memory.ports.store import Store
from recollect.memory.threads.rolling_summary import RollingSummaries, begin_record
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import Clock
from recollect.memory.values.tokens import estimate_tokens

PAGE = 200
MOST_SIZES = 10_000


@frozen
class Archive:
    """Archives threads in two steps, each of which may be repeated."""

    store: Store
    summaries: RollingSummaries
    clock: Clock

    async def begin(self, scope: Scope, *, to: int) -> ThreadRecord | None:
        """Record that the thread is archived up to position `to`, with its summary pending, unless it was so before.

        Return the record, or None for a thread without messages.
        """
        while True:
            record = await begin_record(self.store, scope, self.clock)
            if record is None or record.archived_to >= to:
                return record
            archived = record.revised(archived_to=to, archived_at=self.clock(), closing=True)
            if await self.store.threads.put(archived, revision=record.revision):
                return archived

    async def finish(self, scope: Scope) -> None:
        """Write the pending summary of the thread's archive, if any.

        Raises:
            StoreUnavailable, ModelUnavailable, UnreadableAnswer: the summary is still pending.
        """
        while (record := await self.store.threads.record(scope)) is not None and record.closing:
            await self.summaries.take_in(scope, before=record.archived_to + 1)
            latest = await begin_record(self.store, scope, self.clock)
            # Archived further meanwhile: the summary must cover those turns, too, before `closing` is cleared.
            if latest is None or latest.archived_to != record.archived_to:
                continue
            if await self.store.threads.put(latest.revised(closing=False), revision=latest.revision):
                return


@dataclass(slots=True)
class ThreadSizes:
    """Counts the tokens of threads' messages, each time from where the last count of that thread ended."""

    store: Store
    _counted: OrderedDict[Scope, tuple[int, int, int]] = field(default_factory=OrderedDict[Scope, tuple[int, int, int]])

    async def tokens(self, scope: Scope, *, after: int, to: int) -> int:
        """Return the tokens of the messages with a position above `after` and at most `to`."""
        begun, place, tokens = self._counted.pop(scope, (after, after, 0))
        if begun != after or place > to:
            place, tokens = after, 0
        while place < to:
            page = await self.store.conversations.messages(scope, limit=PAGE, after=place)
            counted = [message for message in page if message.position <= to]
            tokens += sum(estimate_tokens(message.content) for message in counted)
            place = to if len(counted) < PAGE else counted[-1].position
        self._counted[scope] = (after, place, tokens)
        if len(self._counted) > MOST_SIZES:
            self._counted.popitem(last=False)
        return tokens
