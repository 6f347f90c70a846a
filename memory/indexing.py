"""The index step of an update, and the repair that makes the index hold what the documents say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memory.documents import Documents
from memory.embedder import Embedder
from memory.expected import count_expected, differing, expected, orphans
from memory.turn import Message, Turn
from memory.update import Update
from memory.user_work import Resting, Save
from memory.vector_index import Entry, Point, PointStore, VectorIndex, episode, made_point

EMBED_BATCH = 64

Progress = Callable[[int, int], None]
"""Told how many points are done, and of how many."""


async def make_points(entries: Sequence[Entry], embedder: Embedder) -> list[Point]:
    """The points of these entries, embedded in one call.

    Raises:
        ModelUnavailable: the embedder cannot be reached, or refuses the texts.
    """
    if not entries:
        return []
    vectors = await embedder.embed_documents([entry.content for entry in entries])
    return [made_point(entry, dense, model=embedder.model) for entry, dense in zip(entries, vectors, strict=True)]


@dataclass(frozen=True, slots=True)
class IndexStep:
    """Makes the messages of a turn findable. Point ids are deterministic, so that twice is once."""

    index: VectorIndex
    embedder: Embedder

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Embed and index; see `StepWork.run`."""
        await self.add(turn.messages)
        return update

    async def resting(self, turns: Sequence[tuple[Turn, Update]]) -> Resting:
        """No turn waits for another."""
        return {}

    async def take_back(self, turn: Turn) -> None:
        """The turn was deleted while it was indexed: its points go too."""
        await self.index.remove(user_id=turn.message.user_id, ids=[message.id for message in turn.messages])

    async def add(self, messages: Sequence[Message]) -> None:
        """Embed and index these messages."""
        await self.index.upsert(await make_points([episode(message) for message in messages], self.embedder))


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
                await self.points.upsert(await make_points(batch, self.embedder))
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

    Equal counts are taken as equality: it runs at every start, and the doctor looks closer.

    Raises:
        StoreUnavailable, ModelUnavailable: what it did so far stays, and the next start goes on.
    """
    if await count_expected(documents) == await index.count():
        return Repaired(0, 0)
    mended = await Mending(documents, index, embedder).run()
    return Repaired(mended.made, mended.removed)
