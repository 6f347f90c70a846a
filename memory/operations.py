"""The verbs of whoever runs the service: what is open, whether it answers, what it owes, repair, and the end."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from datetime import datetime

from recollect.memory.index.doctor import Report, examine
from recollect.memory.index.filter_filling import FilterFilling
from recollect.memory.index.reindexing import Reindexer
from recollect.memory.parts import Parts
from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.ports.updates import Backlog
from recollect.memory.updates.replay import Replayed, replay_failed
from recollect.memory.updates.retention import Reason
from recollect.memory.values.errors import RecollectError
from recollect.memory.values.frozen import frozen

logger = logging.getLogger(__name__)

PING_SECONDS = 3.0


@frozen
class Operations:
    """Serves operators. A call waits up to `wait_seconds` for updates that are worked off.

    `fallen_back` are sentences about models that fall back to weaker ones.
    """

    parts: Parts
    chat: ChatModel
    extraction_model: str
    wait_seconds: float
    filling: FilterFilling
    fallen_back: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """Return sentences about weaker models in use, and about filter keys that differ between processes."""
        differing = self.filling.warning
        return [*self.fallen_back, *([differing] if differing is not None else [])]

    @property
    def backends(self) -> dict[str, str]:
        """Return the names of the opened backends by what they hold: "documents" (the store) and "index"."""
        return {"documents": self.parts.store.name, "index": self.parts.index.name}

    @property
    def models(self) -> dict[str, str]:
        """Return the names of the models by role: "chat", "extraction", "embedder"."""
        return {"chat": self.chat.name, "extraction": self.extraction_model, "embedder": self.parts.embedder.model}

    async def down(self) -> list[str]:
        """Return those of "documents" (the store), "index", "chat" and "embedder" that do not answer now."""
        pings: dict[str, Awaitable[None]] = {
            "documents": self.parts.store.ping(),
            "index": self.parts.index.ping(),
            "chat": self.chat.ping(),
            "embedder": self.parts.embedder.ping(),
        }
        answers = await asyncio.gather(*(_answers(name, ping) for name, ping in pings.items()))
        return [name for name, answered in zip(pings, answers, strict=True) if not answered]

    async def examine(self) -> Report:
        """Compare the whole index with the store; see `doctor.examine`."""
        return await examine(self.parts.store, self.parts.index, self.parts.embedder, now=self.parts.clock())

    def reindexer(self) -> Reindexer:
        """Return what rebuilds the index on request; whoever asks for it closes it."""
        return Reindexer(self.parts.store, self.parts.index, self.parts.embedder)

    async def replay_failed(self) -> Replayed:
        """Retry all failed updates, and wait for them; see `replay.replay_failed`."""
        return await replay_failed(self.parts.store, self.parts.updater, seconds=self.wait_seconds)

    async def backlog(self, *, at_most: int) -> Backlog:
        """Return how many updates are pending, counted up to `at_most`, and since when the oldest is."""
        return await self.parts.store.updates.waiting(at_most=at_most)

    @property
    def evicted(self) -> Mapping[Reason, int]:
        """Return how many facts and messages retention has removed since the start, by reason."""
        return self.parts.retention.evicted

    def now(self) -> datetime:
        """Return the memory's time (UTC)."""
        return self.parts.clock()

    async def drain(self, seconds: float) -> None:
        """Begin no more updates, and wait up to `seconds` for those under way; the next start resumes the rest."""
        await self.parts.updater.drain(seconds)


async def _answers(name: str, ping: Awaitable[None]) -> bool:
    try:
        await asyncio.wait_for(ping, PING_SECONDS)
    except (RecollectError, TimeoutError) as error:
        logger.warning("backend down", extra={"action": "backend_down", "backend": name, "error": type(error).__name__})
        return False
    return True
