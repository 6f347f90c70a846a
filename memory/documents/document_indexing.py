"""Makes documents findable: embeds the passages that the index lacks, and removes those of earlier versions.

Ids are derived from document and text: a repeated run writes the same points, and an unchanged passage is not embedded
again. The store says which passages have yet to be indexed, so that a kill or an outage only delays them.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from recollect.memory.background.batches import batches
from recollect.memory.background.keyed_worker import KeyedWorker
from recollect.memory.background.sweep import Sweep
from recollect.memory.erasure.fences import Fence, Fences
from recollect.memory.index.expected import differing, passage_entry
from recollect.memory.index.indexing import EMBED_BATCH, make_points
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.threads.recorded_hits import RecordedHits
from recollect.memory.values.document import Document, Passage
from recollect.memory.values.errors import RecollectError, UserErased
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import Clock

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Most documents that are indexed at the same time."""
OTHERS_SECONDS = 15.0
"""A document that was written to more recently is left to the process that works on it, except at the start."""
CUT_OFF_SECONDS = 60.0
"""Content that is incomplete this long after the last write is given up: its writer is gone."""
TOUCH_SECONDS = 5.0
"""Pause between the writes by which a worker shows that it is alive; far below `OTHERS_SECONDS`."""
MOST_PROCESSING = 100
_BATCH = 500
CUT_OFF = "Its content was cut off before it was stored; send it again."
CUT_OFF_ANEW = "Its new content was cut off before it was stored, and the one before stays; send it again."

_Key = tuple[str, str]


class DocumentIndexing:
    """Indexes documents that are `processing`, each in a task of its own, until they are `done` or `failed`.

    `_unremoved` holds the points by user whose removal is to be retried. It is lost with the process, as is what the
    worker has yet to do; the next start's sweep finds unfinished documents itself.
    """

    def __init__(
        self,
        store: Store,
        index: VectorIndex,
        embedder: Embedder,
        fences: Fences,
        clock: Clock,
        *,
        sweep_seconds: float = 5.0,
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._fences = fences
        self._clock = clock
        self._sweep = Sweep("documents-sweep", self._see_to_unfinished, seconds=sweep_seconds)
        self._worker = KeyedWorker(
            "document-indexing", self._index_one, at_once=AT_ONCE, failed=_log_waiting, give_up=self._give_up
        )
        self._unremoved: dict[str, set[str]] = {}
        self._has_seen_start = False
        self._opened_at = clock()

    def start(self) -> None:
        """Resume what an earlier process left unfinished: at once, and again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop the sweep and all workers; the next start resumes what is not done."""
        await self._sweep.close()
        await self._worker.close()

    def begin(self, document: Document) -> None:
        """Index the document in the background, with retries for as long as an outage lasts."""
        self._worker.wake((document.user_id, document.id))

    async def settled(self, document: Document, *, seconds: float) -> None:
        """Wait until the document's worker has ended, no longer than `seconds`."""
        await self._worker.settled((document.user_id, document.id), seconds=seconds)

    async def delete(self, user_id: str, document_id: str) -> bool:
        """Delete the document with its passages and their points; return False where the user has none of this id.

        The first write empties the header: from then on search shows no passage and nobody can add one. The sweep
        deletes what a kill or an outage leaves.
        """
        documents = self._store.documents
        while (document := await documents.document(user_id=user_id, document_id=document_id)) is not None:
            emptied = document.revised(
                status="processing", error=None, version=0, incoming=0, passages=0, updated_at=self._clock()
            )
            if await documents.put(emptied, revision=document.revision):
                await self._remove_emptied((user_id, document_id))
                return True
        return False

    async def remove_points(self, user_id: str, ids: Sequence[str]) -> None:
        """Remove these points of lost passages; while the index is down, the sweep retries."""
        # Mark all of them first: what an outage leaves is then known to the sweep.
        waiting = self._unremoved.setdefault(user_id, set())
        waiting.update(ids)
        for batch in batches(ids, _BATCH):
            await self._index.remove(user_id=user_id, ids=batch)
            waiting.difference_update(batch)
        if not waiting:
            self._unremoved.pop(user_id, None)

    async def _index_one(self, key: _Key) -> None:
        """Index one document until it is `done`; there is nothing left to do where its owner was erased meanwhile."""
        with suppress(UserErased):
            await self._finish(key)

    async def _finish(self, key: _Key) -> None:
        """Index the document's unindexed passages, remove outdated ones, and mark the document as done.

        Raises:
            UserErased: the owner was erased meanwhile.
        """
        documents, (user_id, document_id) = self._store.documents, key
        fence = await self._fences.observe(Scope(user_id))
        while (document := await documents.document(user_id=user_id, document_id=document_id)) is not None:
            if document.status != "processing" or not document.version:
                return
            owed = await documents.passages.owed(user_id=user_id, document_id=document_id, limit=EMBED_BATCH)
            if owed:
                await self._follow(owed, fence)
                await self._touch(document)
                continue
            await self._remove_outdated(key)
            # Another version is being written: this one is not marked as done, because that would change the header's
            # revision, and the other write would have to begin again.
            if document.incoming:
                return  # whoever writes it begins again
            done = document.revised(status="done", error=None, updated_at=self._clock())
            # A conditional write: where somebody changed the header meanwhile, look again.
            if await documents.put(done, revision=document.revision):
                logger.info("document indexed", extra={"action": "document_indexed", "document_id": document_id})
                return

    async def _follow(self, owed: Sequence[Passage], fence: Fence) -> None:
        """Store points for the passages in `owed` that the index lacks; remove those of passages deleted meanwhile."""
        user_id, ids = owed[0].user_id, [passage.id for passage in owed]
        dimension = await self._embedder.dimension()
        entries = [passage_entry(passage) for passage in owed]
        lacking = await differing(self._index, entries, model=self._embedder.model, dimension=dimension)
        points = await make_points([*lacking.missing, *lacking.wrong], self._embedder)
        passages = self._store.documents.passages
        # Embed outside of the fence, which an erasure waits for. Points first, then the flag: a kill in between leaves
        # passages that are unindexed by the store, whose points the next run finds equal.
        async with fence.writing() as writing:
            writing.on_erased(lambda: self.remove_points(user_id, ids))
            await self._index.upsert(points)
            marked = await passages.mark_indexed(owed)
        if marked < len(owed):
            there = {passage.id for passage in await passages.passages(user_id=user_id, passage_ids=ids)}
            await self.remove_points(user_id, [lost for lost in ids if lost not in there])

    async def _remove_outdated(self, key: _Key) -> None:
        """Remove passages of earlier versions; their points first, since the passages are what names the points."""
        passages, (user_id, document_id) = self._store.documents.passages, key
        while old := await passages.outdated(user_id=user_id, document_id=document_id, limit=_BATCH):
            ids = [passage.id for passage in old]
            kept = {passage.id for passage in await passages.passages(user_id=user_id, passage_ids=ids)}
            await self.remove_points(user_id, [lost for lost in ids if lost not in kept])
            await passages.remove(old)

    async def _remove_emptied(self, key: _Key) -> None:
        """Remove the rest of a document with an emptied header; the header last, since the sweep resumes by it.

        A turn that is stored from now on checks by itself whether the documents it recalled still exist.
        """
        await RecordedHits(self._store).blank_document(*key)
        await self._remove_outdated(key)
        await self._store.documents.remove(user_id=key[0], document_id=key[1])

    async def _touch(self, document: Document) -> None:
        """Update the document's time every `TOUCH_SECONDS`: other processes then leave it to this one."""
        now = self._clock()
        if now - document.updated_at > timedelta(seconds=TOUCH_SECONDS):
            await self._store.documents.put(document.revised(updated_at=now), revision=document.revision)

    async def _give_up(self, key: _Key, error: Exception) -> None:
        """Mark the document as failed because of `error`."""
        reason = error.message if isinstance(error, RecollectError) else type(error).__name__
        await self._fail(key, f"It could not be indexed: {reason}")

    async def _fail(self, key: _Key, reason: str) -> None:
        """Mark the document as failed with `reason`, unless its status changed meanwhile."""
        documents, (user_id, document_id) = self._store.documents, key
        document = await documents.document(user_id=user_id, document_id=document_id)
        if document is not None and document.status == "processing":
            failed = document.revised(status="failed", error=reason, incoming=0, updated_at=self._clock())
            await documents.put(failed, revision=document.revision)

    async def _see_to_unfinished(self) -> None:
        """Resume what dead processes left, at the start everything; give up incomplete content; retry removals."""
        now = self._clock()
        for document in await self._store.documents.processing(limit=MOST_PROCESSING):
            key = (document.user_id, document.id)
            untouched = (now - document.updated_at).total_seconds()
            if document.incoming:
                if untouched > CUT_OFF_SECONDS or self._is_of_an_earlier_process(document):
                    await self._fail(key, CUT_OFF_ANEW if document.version else CUT_OFF)
                    await self._remove_outdated(key)
            elif not self._worker.is_busy(key) and (untouched > OTHERS_SECONDS or not self._has_seen_start):
                if document.version:
                    self.begin(document)
                else:  # it was being deleted
                    await self._remove_emptied(key)
        self._has_seen_start = True
        for user_id, ids in list(self._unremoved.items()):
            # A passage with one of these ids may have been stored again meanwhile: then its point stays.
            there = {passage.id for passage in await self._there(user_id, list(ids))}
            ids -= there
            await self.remove_points(user_id, list(ids))

    def _is_of_an_earlier_process(self, document: Document) -> bool:
        """Tell whether the last write is from before this start, on a store of one process: its writer is gone."""
        return not self._store.erasures.is_shared and document.updated_at < self._opened_at

    async def _there(self, user_id: str, ids: Sequence[str]) -> list[Passage]:
        """Return those of the passages in `ids` that the store has."""
        found = list[Passage]()
        for batch in batches(ids, _BATCH):
            found += await self._store.documents.passages.passages(user_id=user_id, passage_ids=batch)
        return found


def _log_waiting(key: _Key, error: Exception) -> None:
    known = isinstance(error, RecollectError)
    logger.warning(
        "a document waits to be indexed",
        extra={"action": "document_waits", "document_id": key[1], "error": type(error).__name__},
        exc_info=None if known else error,
    )
