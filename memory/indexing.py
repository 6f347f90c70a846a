"""The index step of an update, and the repair that makes the index hold what the documents say."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from memory.documents import Conversations
from memory.embedder import Embedder
from memory.turn import Message, Turn
from memory.update import Update
from memory.user_work import Save
from memory.vector_index import Point, VectorIndex, episode

logger = logging.getLogger(__name__)

EMBED_BATCH = 64


@dataclass(frozen=True, slots=True)
class IndexStep:
    """Makes the messages of a turn findable. Point ids are deterministic, so that twice is once."""

    index: VectorIndex
    embedder: Embedder

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Embed and index; see `StepWork.run`."""
        await self.add([turn.message] if turn.reply is None else [turn.message, turn.reply])
        return update

    async def add(self, messages: Sequence[Message]) -> None:
        """Embed and index these messages."""
        vectors = await self.embedder.embed_documents([message.content for message in messages])
        await self.index.upsert(
            [Point(episode(message), dense) for message, dense in zip(messages, vectors, strict=True)]
        )


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did: points added for messages that had none, points removed that no message stands behind."""

    added: int
    removed: int


async def repair(conversations: Conversations, index: VectorIndex, embedder: Embedder) -> Repaired:
    """Add the points that are missing, and remove the episodes that no message stands behind.

    Equal counts are taken as equality: it runs at every start, and the doctor looks closer.

    Raises:
        StoreUnavailable, ModelUnavailable: what it did so far stays, and the next start goes on.
    """
    if await conversations.count_indexed_messages() == await index.count():
        return Repaired(0, 0)
    step, added = IndexStep(index, embedder), 0
    expected = set[str]()
    async for messages in conversations.indexed_messages():
        expected.update(message.id for message in messages)
        known = await index.known([message.id for message in messages])
        missing = [message for message in messages if message.id not in known]
        for start in range(0, len(missing), EMBED_BATCH):
            await step.add(missing[start : start + EMBED_BATCH])
        added += len(missing)
    return Repaired(added, await _remove_orphans(conversations, index, expected))


async def _remove_orphans(conversations: Conversations, index: VectorIndex, expected: set[str]) -> int:
    """Remove the episodes of turns that no longer exist.

    Only of those that the documents do not know at all: a message that is being indexed right now has its point first.
    """
    removed, after = 0, None
    while page := await index.ids(after=after):
        after = page[-1]
        for entry in await index.entries([point for point in page if point not in expected]):
            turn = await conversations.turn(user_id=entry.user_id, turn_id=entry.turn_id or "")
            if entry.kind == "episode" and turn is None:
                await index.remove(user_id=entry.user_id, ids=[entry.id])
                removed += 1
    return removed
