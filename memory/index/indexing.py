"""The index step of an update, and the repair that makes the index equal to the store."""

import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from uuid import UUID

from typing_extensions import override

from recollect.memory.background.batches import batches
from recollect.memory.background.bulk import Bulk
from recollect.memory.background.long_texts import INLINE_CHARACTERS, off_loop
from recollect.memory.index.bm25 import document_weights, documents_weights
from recollect.memory.index.expected import called_for, count_expected, differing, expected, first_expected, orphans
from recollect.memory.index.serving_embedder import steady
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.vector_index import (
    Entry,
    Point,
    PointStore,
    SparseVector,
    VectorIndex,
    episode,
    index_fingerprint,
    indexed_message,
)
from recollect.memory.updates.step_work import Deferred, Save, StepWork
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Update

logger = logging.getLogger(__name__)

EMBED_BATCH = 64
MOST_PRECEDING = 300
"""The most characters of a message that is used as context of the next one: a longer one would outweigh it."""
PRECEDING = 3
"""How many messages before a message add their words to its BM25 vector."""
PLACES, SAMPLED, COMPARED = 16, 16, 4
"""A start samples the index: the number of places, of points at each, and of those that are compared with the store."""

Indexing = Callable[[str, Sequence[Entry], Mapping[str, Sequence[str]]], Awaitable[None]]
"""Indexes entries of a user, given the texts before them as `make_points` takes them, and what else is owed."""
Progress = Callable[[int, int], None]
"""Called with the number of points that are done, and of all."""


async def preceding_texts(timeline: Timeline, given: Sequence[Message]) -> dict[str, list[str]]:
    """Return, by message id, the texts before it in its thread, nearest first; for a reply its own question first.

    The further messages of a turn have none: their points are the same whenever they are made.
    """
    messages = [message for message in given if not message.place]
    asked = {(message.user_id, message.turn_id): message for message in messages if message.role == "user"}
    replies = {
        message.id: own
        for message in messages
        if message.role == "assistant" and (own := asked.get((message.user_id, message.turn_id))) is not None
    }
    # The timeline does not show a turn that is being indexed, so a reply's own question is added from `messages`.
    others = [message for message in messages if message.id not in replies]
    said = await timeline.preceding(others, count=PRECEDING) if others else {}
    return said | {key: [own.content, *said.get(own.id, [])][:PRECEDING] for key, own in replies.items()}


async def make_points(
    entries: Sequence[Entry],
    embedder: Embedder,
    *,
    preceding: Mapping[str, Sequence[str]] | None = None,
    bulk: Bulk | None = None,
) -> list[Point]:
    """Make the points of these entries, embedded in one call.

    `preceding` are by an entry's id the texts before it, nearest first: the first is its context, and up to three add
    their words. With `bulk` the words of long texts are weighed as bulk work.

    Raises:
        ModelUnavailable: the embedder cannot be reached, or refuses the texts.
    """
    if not entries:
        return []
    embedder = await steady(embedder)  # vectors, model and channels are of one embedder, though it is switched
    before = {key: list(takewhile(_is_short, texts))[:PRECEDING] for key, texts in (preceding or {}).items()}
    behind = [entry for entry in entries if before.get(entry.id)] if embedder.knows_meaning else []
    contexts = [f"{before[entry.id][0]}\n{entry.content}" for entry in behind]
    vectors = await embedder.embed_documents([*(entry.content for entry in entries), *contexts])
    by_id = dict(zip((entry.id for entry in behind), vectors[len(entries) :], strict=True))
    words = await _weigh([(entry.content, before.get(entry.id, [])) for entry in entries], bulk)
    return [
        Point(
            entry,
            dense,
            # With nothing before it, a message is its own context.
            context=by_id.get(entry.id, dense) if embedder.knows_meaning and entry.kind == "episode" else None,
            bm25=bm25,
            fingerprint=index_fingerprint(entry, model=embedder.model, dimension=len(dense)),
        )
        for entry, dense, bm25 in zip(entries, vectors[: len(entries)], words, strict=True)
    ]


def _is_short(text: str) -> bool:
    return len(text) <= MOST_PRECEDING


async def _weigh(texts: Sequence[tuple[str, Sequence[str]]], bulk: Bulk | None) -> list[SparseVector]:
    """Weigh the words of texts, each with the texts before it; in a thread where they are long."""
    if bulk is not None and sum(len(text) for text, _ in texts) > INLINE_CHARACTERS:
        return await bulk.each(lambda text: document_weights(*text), texts)
    return await off_loop(lambda: documents_weights(texts), [text for text, _ in texts])


@frozen
class IndexStep(StepWork):
    """Makes the points of a turn's messages. Their ids are derived, so that running it twice has the effect of once.

    With `beside` they are made together with those of the facts that the turn has taught.
    """

    index: VectorIndex
    embedder: Embedder
    timeline: Timeline
    beside: Indexing | None = None

    @override
    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Embed and index the messages; see `StepWork.run`. The old reply of a regenerated turn is removed before."""
        if update.anew and turn.reply is not None:
            await self.index.remove(user_id=turn.message.user_id, ids=[turn.reply.id])
        await self.add(turn.spoken)
        return update

    @override
    async def deferred(self, turns: Sequence[tuple[Turn, Update]]) -> Deferred:
        """Defer no turn."""
        return {}

    @override
    async def take_back(self, turn: Turn) -> None:
        """Remove the points of a turn that was deleted while it was indexed."""
        await self.index.remove(user_id=turn.message.user_id, ids=[message.id for message in turn.spoken])

    async def add(self, messages: Sequence[Message]) -> None:
        """Embed and index these messages of one turn."""
        before = await preceding_texts(self.timeline, messages)
        entries = [episode(message) for message in messages]
        if self.beside is not None and messages:
            await self.beside(messages[0].user_id, entries, before)
        else:
            await self.index.upsert(await make_points(entries, self.embedder, preceding=before))
        logger.debug("points made", extra={"action": "points_made", "ids": [entry.id for entry in entries]})


@frozen
class RepairOutcome:
    """The counts of a pass over store and points; `ids` are the ids of the points that the store calls for."""

    matched: int = 0
    added: int = 0
    replaced: int = 0
    removed: int = 0
    ids: set[str] = field(default_factory=set[str], repr=False, compare=False)

    @property
    def made(self) -> int:
        """Return how many points were made: the missing ones, and those with a wrong fingerprint."""
        return self.added + self.replaced


@frozen
class IndexRepair:
    """Makes the points of one user, or of all, equal to the store. `afresh` replaces points that are right, too."""

    store: Store
    points: PointStore
    embedder: Embedder
    user_id: str | None = None
    afresh: bool = False

    async def run(self, progress: Progress | None = None) -> RepairOutcome:
        """Make one pass. Changes during the pass are left to whoever makes them, or to another pass.

        Raises:
            StoreUnavailable, ModelUnavailable: what was done so far stays, and another pass goes on from there.
        """
        total = await count_expected(self.store, user_id=self.user_id) if progress is not None else 0
        ids, added, replaced, done = set[str](), 0, 0, 0
        async for entries in expected(self.store, user_id=self.user_id):
            ids.update(entry.id for entry in entries)
            missing, wrong = await self._owing(entries)
            added, replaced = added + len(missing), replaced + len(wrong)
            await self._make_room(wrong)
            owing = [*missing, *wrong]
            done += len(entries) - len(owing)
            for batch in batches(owing, EMBED_BATCH):
                messages = [
                    indexed_message(entry)
                    for entry in batch
                    if entry.kind == "episode" and indexed_message(entry).id == entry.id
                ]
                before = await preceding_texts(self.store.timeline, messages)
                await self.points.upsert(await make_points(batch, self.embedder, preceding=before))
                done += len(batch)
                if progress is not None:
                    progress(done, max(total, done))
        removed = await self._remove_orphans(ids)
        return RepairOutcome(len(ids) - added - replaced, added, replaced, removed, ids)

    async def _owing(self, entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
        dimension = await self.embedder.dimension()
        missing, wrong = await differing(self.points, entries, model=self.embedder.model, dimension=dimension)
        if self.afresh:
            absent = {entry.id for entry in missing}
            wrong = [entry for entry in entries if entry.id not in absent]
        return missing, wrong

    async def _make_room(self, wrong: Sequence[Entry]) -> None:
        """Remove other users' points that have the ids of these entries.

        An id derives from its owner, so that nobody else's point belongs there; an earlier version allowed it.
        """
        owners = {entry.id: entry.user_id for entry in wrong}
        for stored in await self.points.entries(list(owners)) if owners else ():
            if stored.user_id != owners[stored.id]:
                await self.points.remove(user_id=stored.user_id, ids=[stored.id])

    async def _remove_orphans(self, ids: set[str]) -> int:
        removed = 0
        async for entry in orphans(self.store, self.points, ids, user_id=self.user_id):
            await self.points.remove(user_id=entry.user_id, ids=[entry.id])
            removed += 1
        return removed


@frozen
class StartRepair:
    """The number of points that a repair made (added or replaced), and of orphans that it removed."""

    added: int
    removed: int


async def repair(store: Store, index: VectorIndex, embedder: Embedder) -> StartRepair:
    """Make the index equal to the store.

    Equal counts are taken as equality unless a sample shows a difference, because this runs at every start; the doctor
    compares everything.

    Raises:
        StoreUnavailable, ModelUnavailable: what was done so far stays, and the next start goes on from there.
    """
    if await count_expected(store) == await index.count() and not await _is_outdated(store, index, embedder):
        return StartRepair(0, 0)
    repair = await IndexRepair(store, index, embedder).run()
    return StartRepair(repair.made, repair.removed)


async def _is_outdated(store: Store, index: VectorIndex, embedder: Embedder) -> bool:
    """Tell whether a sample of points differs from what would be made now: expected ones, and some of the index's."""
    dimension = await embedder.dimension()
    async for entries in first_expected(store):
        found = await differing(index, entries, model=embedder.model, dimension=dimension)
        if found.missing or found.wrong:
            return True
    for place in range(PLACES):
        if await _differs_at(place, store, index, model=embedder.model, dimension=dimension):
            return True
    return False


async def _differs_at(place: int, store: Store, index: VectorIndex, *, model: str, dimension: int) -> bool:
    """Tell whether sampled points in one of `PLACES` parts of the index differ from what would be made now.

    All are compared with their own entries, a few with the store. Ids are evenly distributed, so that the points after
    a random id are a random sample.
    """
    width = 2**128 // PLACES
    ids = await index.ids(after=str(UUID(int=place * width + random.randrange(width))), limit=SAMPLED)
    if not ids:
        return False
    stored, entries = await index.fingerprints(ids), await index.entries(ids)
    if any(stored.get(entry.id) != index_fingerprint(entry, model=model, dimension=dimension) for entry in entries):
        return True
    for entry in entries[:COMPARED]:
        said = await called_for(store, entry)
        if said is None or (
            said != "pending" and index_fingerprint(said, model=model, dimension=dimension) != stored[entry.id]
        ):
            return True
    return False
