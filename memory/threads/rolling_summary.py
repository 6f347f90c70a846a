"""Keeps rolling summaries: turns that leave a thread's window are taken into its summary, in the background.

A record is written by compare-and-set on its revision, and only in place of an existing one. If the thread is deleted
while its summary is made, the write finds no record and fails, so that no deleted text comes back.
"""

import logging
from collections.abc import Sequence

from recollect.memory.ports.store import Store
from recollect.memory.ports.summariser import Summariser, Summary, SummaryTask
from recollect.memory.threads.summary_prompt import first_call
from recollect.memory.threads.window import read_window
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import Clock, to_ms
from recollect.memory.values.turn import Exchange, Turn

logger = logging.getLogger(__name__)

MOST_TURNS = 100
"""How many turns are read from the store at once."""


@frozen
class RollingSummaries:
    """Takes turns into the summaries of threads. If several work on one thread, the first write wins."""

    store: Store
    summariser: Summariser
    config: MemoryConfig
    clock: Clock

    async def take_in(self, scope: Scope, *, before: int, at_least: int = 1) -> None:
        """Take the finished turns with a position below `before` into the thread's summary.

        Nothing is done if fewer than `at_least` of them are not in it yet. The result of each call to the summariser is
        stored before the next; if a person edits the summary meanwhile, the next call starts from that text.

        Raises:
            StoreUnavailable, ModelUnavailable, UnreadableAnswer: turns that were taken in before stay in the summary.
        """
        while True:
            record = await self.store.threads.record(scope)
            after = record.summarised_to if record is not None else 0
            limit = max(MOST_TURNS, at_least)
            found = await self.store.conversations.exchanges(scope, after=after, limit=limit)
            leaving = [exchange for exchange in found if exchange.user.position < before]
            if len(leaving) < at_least:
                return
            if record is None:
                # The record is made before the turns are read again: if they are deleted meanwhile, so is the
                # record, and `put` fails.
                await begin_record(self.store, scope, self.clock)
                continue
            chunk = first_call(leaving)
            written = await self._with(record, chunk)
            if await self.store.threads.put(written, revision=record.revision):
                at_least = 1

    async def left_window(self, turn: Turn) -> int:
        """Return the position below which the thread's turns have left the window once `turn` is in it.

        The window is the configured one. Turns that do not fit into the token budget because of this turn's length
        leave it with the next turn.
        """
        own, turns = turn.message.position, self.config.window
        shown = await read_window(
            self.store.conversations,
            turn.message.scope,
            turns=turns,
            tokens=self.config.window_tokens,
            before=own,
        )
        positions = [exchange.user.position for exchange in shown]
        return [*positions, own][-turns:][0] if turns else own + 2

    async def _with(self, record: ThreadRecord, chunk: Sequence[Exchange]) -> ThreadRecord:
        """Summarise these turns and return the record with the new summary; it is not stored yet."""
        remembered = [exchange for exchange in chunk if await self._is_remembered(exchange)]
        at, to = self.clock(), chunk[-1].assistant.position
        if not remembered:
            return record.revised(summarised_to=to, summarised_at=at)
        request = SummaryTask(record.summary, remembered, self.config.summary_tokens, at)
        summary = await self.summariser.summarise(request)
        _log(summary, len(chunk))
        if not summary.text:
            return record.revised(summarised_to=to, summarised_at=at)
        return record.revised(summary=summary.text, summary_by=summary.by, summarised_to=to, summarised_at=at)

    async def _is_remembered(self, exchange: Exchange) -> bool:
        """Tell whether the turn ran with memory: a turn without it enters no summary."""
        message = exchange.user
        turn = await self.store.conversations.turn(user_id=message.user_id, turn_id=message.turn_id)
        if turn is None or turn.update is None:
            return False
        index = turn.update.steps.get("index")
        return index is None or index.status != "skipped"


async def begin_record(store: Store, scope: Scope, clock: Clock) -> ThreadRecord | None:
    """Return the thread's record, and store an empty one first if it has none; None for a thread without messages.

    The first revision is the time in milliseconds, so that a new record never has a revision of the deleted thread's.
    """
    record = await store.threads.record(scope)
    if record is None:
        empty = ThreadRecord(scope.user_id, scope.thread, revision=to_ms(clock()))
        await store.threads.put(empty, revision=0)
        record = await store.threads.record(scope)
    if await store.conversations.last_position(scope) == 0:
        await store.threads.delete(scope)
        return None
    return record


def _log(summary: Summary, turns: int) -> None:
    logger.info(
        "thread summarised",
        extra={"action": "summarised", "turns": turns, "model": summary.model}
        | {"input_tokens": summary.usage.input_tokens, "output_tokens": summary.usage.output_tokens},
    )
