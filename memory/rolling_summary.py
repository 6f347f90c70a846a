"""Rolling summaries: what leaves a thread's window is taken into its summary, in the background.

A record is written under the revision that it was read at, and only to replace one that is there: a summary that was
being made while its thread was deleted finds no record to write to, so that no deleted text comes back.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from memory.documents import Documents
from memory.mem_config import MemoryConfig
from memory.scope import Scope
from memory.summarizer import Summarizer, Summary, SummaryRequest
from memory.summary_prompt import first_call
from memory.thread_record import ThreadRecord
from memory.times import Clock, to_ms
from memory.turn import Exchange, Turn
from memory.window import read_window

logger = logging.getLogger(__name__)

MOST_TURNS = 100
"""How many turns are read at once."""


@dataclass(frozen=True, slots=True)
class RollingSummaries:
    """Takes turns into the summaries of threads. Any number may work on one thread: the first to write wins."""

    documents: Documents
    summarizer: Summarizer
    config: MemoryConfig
    clock: Clock

    async def take_in(self, scope: Scope, *, before: int, at_least: int = 1) -> None:
        """Bring the thread's summary up to the last finished turn whose position is below `before`.

        Nothing is done where fewer than `at_least` turns are not in it yet. Each call to the summarizer is recorded
        before the next; a person who edits the summary meanwhile has written what the next one starts from.

        Raises:
            StoreUnavailable, ModelUnavailable, UnreadableAnswer: what was taken in so far stays.
        """
        while True:
            record = await self.documents.threads.record(scope)
            after = record.summarised_to if record is not None else 0
            limit = max(MOST_TURNS, at_least)
            found = await self.documents.conversations.exchanges(scope, after=after, limit=limit)
            leaving = [exchange for exchange in found if exchange.user.position < before]
            if len(leaving) < at_least:
                return
            if record is None:
                # What leaves is read again behind this: see the module.
                await begin_record(self.documents, scope, self.clock)
                continue
            chunk = first_call(leaving)
            written = await self._with(record, chunk)
            if await self.documents.threads.put(written, revision=record.revision):
                at_least = 1

    async def left_window(self, turn: Turn) -> int:
        """The position below which the thread's turns have left the window once this turn is in it.

        The window is the configured one; what this turn's own length pushes out of the token budget leaves with the
        next turn.
        """
        own, turns = turn.message.position, self.config.window
        shown = await read_window(
            self.documents.conversations,
            turn.message.scope,
            turns=turns,
            tokens=self.config.window_tokens,
            before=own,
        )
        positions = [exchange.user.position for exchange in shown]
        return [*positions, own][-turns:][0] if turns else own + 2

    async def _with(self, record: ThreadRecord, chunk: Sequence[Exchange]) -> ThreadRecord:
        """The record with these turns in its summary."""
        remembered = [exchange for exchange in chunk if await self._is_remembered(exchange)]
        at, to = self.clock(), chunk[-1].assistant.position
        if not remembered:
            return record.revised(summarised_to=to, summarised_at=at)
        request = SummaryRequest(record.summary, remembered, self.config.summary_tokens, at)
        summary = await self.summarizer.summarise(request)
        _log(record, summary, len(chunk))
        if not summary.text:
            return record.revised(summarised_to=to, summarised_at=at)
        return record.revised(summary=summary.text, summary_by=summary.by, summarised_to=to, summarised_at=at)

    async def _is_remembered(self, exchange: Exchange) -> bool:
        """Whether the turn ran with memory: what was stored without is learned by nothing, summaries included."""
        message = exchange.user
        turn = await self.documents.conversations.turn(user_id=message.user_id, turn_id=message.turn_id)
        if turn is None or turn.update is None:
            return False
        index = turn.update.steps.get("index")
        return index is None or index.status != "skipped"


async def begin_record(documents: Documents, scope: Scope, clock: Clock) -> ThreadRecord | None:
    """The thread's record, made empty where it has none; None, and none left behind, for a thread without messages.

    Revisions begin at the time, so that none of a deleted thread's comes again.
    """
    record = await documents.threads.record(scope)
    if record is None:
        empty = ThreadRecord(scope.user_id, scope.thread, revision=to_ms(clock()))
        await documents.threads.put(empty, revision=0)
        record = await documents.threads.record(scope)
    if await documents.conversations.last_position(scope) == 0:
        await documents.threads.delete(scope)
        return None
    return record


def _log(record: ThreadRecord, summary: Summary, turns: int) -> None:
    logger.info(
        "thread summarised",
        extra={"action": "summarised", "thread_id": record.thread_id, "turns": turns, "model": summary.model}
        | {"input_tokens": summary.usage.input_tokens, "output_tokens": summary.usage.output_tokens},
    )
