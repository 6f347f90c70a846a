"""Archiving a thread: closing its session with a summary that is found by meaning. Writing to the thread reopens it.

Killed anywhere, it is finished later: the first write says both that the thread is archived and that a summary is owed
(`closing`), and whoever finds such a record goes on from it.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from memory.documents import Documents
from memory.rolling_summary import RollingSummaries, begin_record
from memory.scope import Scope
from memory.thread_record import ThreadRecord
from memory.times import Clock
from memory.tokens import estimate_tokens

PAGE = 200
MOST_SIZES = 10_000


@dataclass(frozen=True, slots=True)
class Archive:
    """Archives threads, in two parts, each of which may be repeated."""

    documents: Documents
    summaries: RollingSummaries
    clock: Clock

    async def begin(self, scope: Scope, *, to: int) -> ThreadRecord | None:
        """Record that the thread is archived up to position `to` and owes its summary, unless it was before.

        None for a thread without messages.
        """
        while True:
            record = await begin_record(self.documents, scope, self.clock)
            if record is None or record.archived_to >= to:
                return record
            archived = record.revised(archived_to=to, archived_at=self.clock(), closing=True)
            if await self.documents.threads.put(archived, revision=record.revision):
                return archived

    async def finish(self, scope: Scope) -> None:
        """Write the summary that the thread's archive owes, if it owes one.

        Raises:
            StoreUnavailable, ModelUnavailable, UnreadableAnswer: it is still owed.
        """
        while (record := await self.documents.threads.record(scope)) is not None and record.closing:
            await self.summaries.take_in(scope, before=record.archived_to + 1)
            latest = await begin_record(self.documents, scope, self.clock)
            if latest is None or latest.archived_to != record.archived_to:
                continue
            if await self.documents.threads.put(latest.revised(closing=False), revision=latest.revision):
                return


@dataclass(slots=True)
class ThreadSizes:
    """How many tokens a thread's messages have, counted on from where the last count ended."""

    documents: Documents
    _counted: OrderedDict[Scope, tuple[int, int, int]] = field(default_factory=OrderedDict[Scope, tuple[int, int, int]])

    async def tokens(self, scope: Scope, *, after: int, to: int) -> int:
        """The tokens of the messages with a position above `after` and at most `to`."""
        begun, place, tokens = self._counted.pop(scope, (after, after, 0))
        if begun != after or place > to:
            place, tokens = after, 0
        while place < to:
            page = await self.documents.conversations.messages(scope, limit=PAGE, after=place)
            counted = [message for message in page if message.position <= to]
            tokens += sum(estimate_tokens(message.content) for message in counted)
            place = to if len(counted) < PAGE else counted[-1].position
        self._counted[scope] = (after, place, tokens)
        if len(self._counted) > MOST_SIZES:
            self._counted.popitem(last=False)
        return tokens
