"""The index step of an update, and the repair that makes the index hold what the documents say."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from memory.bm25 import document_weights
from memory.documents import Documents, Timeline
from memory.embedder import Embedder
from memory.expected import count_expected, differing, expected, orphans
from memory.turn import Message, Turn
from memory.update import Update
from memory.user_work import Resting, Save
from memory.vector_index import (
    Entry,
    Point,
    PointStore,
    SparseVector,
    VectorIndex,
    episode,
    fingerprint,
    message_of,
)

EMBED_BATCH = 64
MOST_PRECEDING = 300
"""Characters: a longer message says too much of its own to be the context of the next one."""
PRECEDING = 3
"""So many messages before a message lend it their words."""
INLINE_CHARACTERS = 20_000
"""Words of longer texts (in all) are weighed in a thread: at about 1 µs a character they would hold up the loop."""

Progress = Callable[[int, int], None]
"""Told how many points are done, and of how many."""


async def said_before(timeline: Timeline, messages: Sequence[Message]) -> dict[str, list[str]]:
    """By each message's id what stood before it in its thread, nearest first, its own turn's other message too."""
    asked = {(message.user_id, message.turn_id): message for message in messages if message.role == "user"}
    replies = {
        message.id: own
        for message in messages
        if message.role == "assistant" and (own := asked.get((message.user_id, message.turn_id))) is not None
    }
    # A turn that is on its way into the index is none that the timeline shows yet.
    others = [message for message in messages if message.id not in replies]
    said = await timeline.preceding(others, count=PRECEDING) if others else {}
    return said | {key: [own.content, *said.get(own.id, [])][:PRECEDING] for key, own in replies.items()}


async def make_points(
    entries: Sequence[Entry], embedder: Embedder, *, preceding: Mapping[str, Sequence[str]] | None = None
) -> list[Point]:
    """The points of these entries, embedded in one call.

    `preceding` says by an entry's id what stood before it, nearest first: its context is the first of these texts, its
    words those of up to three.

    Raises:
        ModelUnavailable: the embedder cannot be reached, or refuses the texts.
    """
    if not entries:
        return []
    before = {key: list(takewhile(_is_short, texts))[:PRECEDING] for key, texts in (preceding or {}).items()}
    behind = [entry for entry in entries if before.get(entry.id)] if embedder.knows_meaning else []
    contexts = [f"{before[entry.id][0]}\n{entry.content}" for entry in behind]
    vectors = await embedder.embed_documents([*(entry.content for entry in entries), *contexts])
    by_id = dict(zip((entry.id for entry in behind), vectors[len(entries) :], strict=True))
    words = await _weigh([(entry.content, before.get(entry.id, [])) for entry in entries])
    return [
        Point(
            entry,
            dense,
            # With nothing before it, a message is its own context.
            context=by_id.get(entry.id, dense) if embedder.knows_meaning and entry.kind == "episode" else None,
            bm25=bm25,
            fingerprint=fingerprint(entry, model=embedder.model, dimension=len(dense)),
        )
        for entry, dense, bm25 in zip(entries, vectors[: len(entries)], words, strict=True)
    ]


def _is_short(text: str) -> bool:
    return len(text) <= MOST_PRECEDING


async def _weigh(texts: Sequence[tuple[str, Sequence[str]]]) -> list[SparseVector]:
    """The weighted words of texts, each with what stood before it; in a thread where they are long."""
    if sum(len(text) for text, _ in texts) <= INLINE_CHARACTERS:
        return [document_weights(text, before) for text, before in texts]
    return await asyncio.to_thread(lambda: [document_weights(text, before) for text, before in texts])


@dataclass(frozen=True, slots=True)
class IndexStep:
    """Makes the messages of a turn findable. Point ids are deterministic, so that twice is once."""

    index: VectorIndex
    embedder: Embedder
    timeline: Timeline

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Embed and index; see `StepWork.run`. Of a turn that was answered anew the old answer goes before that."""
        if update.anew and turn.reply is not None:
            await self.index.remove(user_id=turn.message.user_id, ids=[turn.reply.id])
        await self.add(turn.messages)
        return update

    async def resting(self, turns: Sequence[tuple[Turn, Update]]) -> Resting:
        """No turn waits for another."""
        return {}

    async def take_back(self, turn: Turn) -> None:
        """The turn was deleted while it was indexed: its points go too."""
        await self.index.remove(user_id=turn.message.user_id, ids=[message.id for message in turn.messages])

    async def add(self, messages: Sequence[Message]) -> None:
        """Embed and index these messages of one turn."""
        before = await said_before(self.timeline, messages)
        entries = [episode(message) for message in messages]
        await self.index.upsert(await make_points(entries, self.embedder, preceding=before))


@dataclass(frozen=True, slots=True)
class Mended:
    """What a pass over documents and points came to; `ids` are those of the points that the documents call for."""

    matched: int = 0
    added: int = 0
    replaced: int = 0
    removed: int = 0
    ids: set[str] = field(default_factory=set[str], repr=False, compare=False)

    @property
    def made(self) -> int:
        """How many points were made: those that were missing, and those with a wrong fingerprint."""
        return self.added + self.replaced


@dataclass(frozen=True, slots=True)
class Mending:
    """Makes points say what the documents say: of one user, or of all. `afresh`: points that are right too."""

    documents: Documents
    points: PointStore
    embedder: Embedder
    user_id: str | None = None
    afresh: bool = False

    async def run(self, progress: Progress | None = None) -> Mended:
        """One pass. What changes meanwhile is the work of whoever changes it, or of another pass.

        Raises:
            StoreUnavailable, ModelUnavailable: what was done so far stays, and another pass goes on.
        """
        total = await count_expected(self.documents, user_id=self.user_id) if progress is not None else 0
        ids, added, replaced, done = set[str](), 0, 0, 0
        async for entries in expected(self.documents, user_id=self.user_id):
            ids.update(entry.id for entry in entries)
            missing, wrong = await self._owing(entries)
            added, replaced = added + len(missing), replaced + len(wrong)
            owing = [*missing, *wrong]
            done += len(entries) - len(owing)
            for start in range(0, len(owing), EMBED_BATCH):
                batch = owing[start : start + EMBED_BATCH]
                messages = [message_of(entry) for entry in batch if entry.kind == "episode"]
                before = await said_before(self.documents.timeline, messages)
                await self.points.upsert(await make_points(batch, self.embedder, preceding=before))
                done += len(batch)
                if progress is not None:
                    progress(done, max(total, done))
        removed = await self._remove_orphans(ids)
        return Mended(len(ids) - added - replaced, added, replaced, removed, ids)

    async def _owing(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
        dimension = await self.embedder.dimension()
        missing, wrong = await differing(self.points, entries, model=self.embedder.model, dimension=dimension)
        if self.afresh:
            absent = {entry.id for entry in missing}
            wrong = [entry for entry in entries if entry.id not in absent]
        return missing, wrong

    async def _remove_orphans(self, ids: set[str]) -> int:
        removed = 0
        async for entry in orphans(self.documents, self.points, ids, user_id=self.user_id):
            await self.points.remove(user_id=entry.user_id, ids=[entry.id])
            removed += 1
        return removed


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did: points added or made anew, and points removed that no document stands behind."""

    added: int
    removed: int


async def repair(documents: Documents, index: VectorIndex, embedder: Embedder) -> Repaired:
    """Make the index hold what the documents say.

    Equal counts are taken as equality, unless the first points show that they were made in an older way: it runs at
    every start, and the doctor looks closer.

    Raises:
        StoreUnavailable, ModelUnavailable: what it did so far stays, and the next start goes on.
    """
    if await count_expected(documents) == await index.count() and not await _is_outdated(documents, index, embedder):
        return Repaired(0, 0)
    mended = await Mending(documents, index, embedder).run()
    return Repaired(mended.made, mended.removed)


async def _is_outdated(documents: Documents, index: VectorIndex, embedder: Embedder) -> bool:
    """Whether the first batch of points differs from what would be made now."""
    async for entries in expected(documents):
        dimension = await embedder.dimension()
        return bool((await differing(index, entries, model=embedder.model, dimension=dimension)).wrong)
    return False
