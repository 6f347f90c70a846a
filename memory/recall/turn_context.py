"""The context of a turn: window, facts, summary and hits for a message, and the memory block made of them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from time import perf_counter
from typing import Any, TypeVar

from recollect.memory.recall.hit import Recalled
from recollect.memory.recall.memory_block import MemoryBlock, Remembered, block_for
from recollect.memory.recall.recall import Recall
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.shown import KnownFacts, SharedReads, Shown
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.tokens import estimate_tokens
from recollect.memory.values.turn import Exchange

logger = logging.getLogger(__name__)

Json = dict[str, Any]
T = TypeVar("T")


@frozen
class Fetched:
    """The parts of a turn's context; `degraded` names those that could not be fetched, and stayed empty.

    `found` is what the search came to, with the traces of its candidates; None where nothing was searched.
    """

    window: Sequence[Exchange] = ()
    facts: KnownFacts = field(default_factory=lambda: KnownFacts({}, ()))
    record: ThreadRecord | None = None
    hits: Sequence[Json] = ()
    degraded: Sequence[str] = ()
    found: Recalled | None = None

    @property
    def summary(self) -> str | None:
        """Return the thread's summary."""
        return self.record.summary if self.record is not None else None

    @property
    def remembered(self) -> Remembered:
        """Return what the memory block is made of."""
        known = self.facts
        return Remembered(known.facts, known.notes, self.summary, self.hits, known.ids, known.own_notes)

    def as_json(self) -> Json:
        """Return what was recalled as a turn's `memory` shows it; `window` counts turns."""
        return {
            "window": len(self.window),
            "facts": dict(self.facts.facts),
            "summary": self.summary,
            "hits": list(self.hits),
            "degraded": list(self.degraded),
            **(self.found.filter_json if self.found is not None else {}),
        }


@frozen
class TurnContext:
    """A turn's context with its memory block; `recall_ms` and `total_ms` are milliseconds."""

    fetched: Fetched
    block: MemoryBlock
    recall_ms: float
    total_ms: float

    def as_json(self) -> Json:
        """Return the context as the HTTP contract shows it."""
        said = [message for exchange in self.fetched.window for message in exchange.spoken]
        text = self.block.text
        return {
            **self.fetched.as_json(),
            "block": text,
            "notes": list(self.fetched.facts.notes),
            "window": [message.as_json() for message in said],
            "tokens": {"block": estimate_tokens(text), "window": sum(estimate_tokens(one.content) for one in said)},
            "timings_ms": {"recall": self.recall_ms, "total": self.total_ms},
        }


async def context_for(recall: Recall, scope: Scope, message: str, options: RecallOptions) -> TurnContext:
    """Return what a turn with this message would be given. Nothing is stored."""
    started = perf_counter()
    fetched = await fetch(recall, scope, message, options)
    ended = perf_counter()
    block = await block_for(message, fetched.remembered, config=recall.config, today=recall.clock().date())
    return TurnContext(fetched, block, _milliseconds(ended - started), _milliseconds(perf_counter() - started))


async def fetch(
    recall: Recall, scope: Scope, message: str, options: RecallOptions, *, before: int | None = None
) -> Fetched:
    """Fetch window, facts and hits at once. A fetch that fails costs its own part; `degraded` names it.

    `before` is the position of the turn that is being answered, where it is stored already.
    """
    if not options.enabled:
        return Fetched()
    seconds, shared = recall.config.recall_timeout_seconds, SharedReads()

    async def read_facts() -> tuple[KnownFacts, ThreadRecord | None]:
        return await asyncio.gather(facts(), recall.thread(scope, agent_id=options.agent_id))

    async def facts() -> KnownFacts:
        return await shared.facts.get(lambda: recall.facts(scope, with_global=True, agent_id=options.agent_id))

    async def window() -> list[Exchange]:
        return await shared.window.get(lambda: recall.window(scope, options, before=before))

    async def search() -> Recalled:
        return await recall.search(scope, message, options, shown=Shown(window, facts))

    known, said, found = await asyncio.gather(
        tried("load_facts", read_facts, seconds=seconds),
        tried("load_window", window, seconds=seconds),
        tried("search_memories", search, seconds=seconds),
    )
    parts = {"load_facts": known, "load_window": said, "search_memories": found}
    given, record = known or (KnownFacts({}, ()), None)
    hits = [hit.as_json() for hit in found.hits] if found is not None else []
    degraded = [name for name, part in parts.items() if part is None]
    return Fetched(said or (), given, record, hits, degraded, found)


async def tried(name: str, work: Callable[[], Awaitable[T]], *, seconds: float) -> T | None:
    """Run one fetch within `seconds`, once more if the store failed; None if it fails, which the log says."""
    try:
        async with asyncio.timeout(seconds):
            try:
                return await work()
            except StoreUnavailable:
                return await work()
    except Exception as error:
        # Each fetch fails on its own: the answer and the log name it, and the rest is given without that part.
        logger.warning(
            "memory fetch failed", extra={"action": "fetch_failed", "node": name, "error": type(error).__name__}
        )
        return None


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1_000, 3)
