"""Makes documents findable: embeds the passages that the index does not hold yet, and removes what they replaced.

Everything goes by ids that are derived from document and text: twice is once, and a passage that is as it was is not
embedded again. What is owed is written down with the passages, so that a kill or an outage only delays it.
"""

import asyncio
import logging
import random
from collections.abc import Sequence
from datetime import timedelta

from memory.documents import Documents
from memory.embedder import Embedder
from memory.errors import RecollectError, UserErased, is_outage
from memory.expected import differing, passage_entry
from memory.fences import Fence, Fences
from memory.indexing import EMBED_BATCH, make_points
from memory.library import LibraryDocument, Passage
from memory.scope import Scope
from memory.sweep import Sweep
from memory.times import Clock
from memory.update import MAX_ATTEMPTS, backoff
from memory.vector_index import VectorIndex

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""How many documents are worked on at the same time."""
OTHERS_SECONDS = 15.0
"""A document that was written to less long ago is left to the process that works on it, except at the start."""
CUT_OFF_SECONDS = 60.0
"""Content that has not arrived so long after it began will not: whoever wrote it is gone."""
TOUCH_SECONDS = 5.0
MOST_PROCESSING = 100
_BATCH = 500
CUT_OFF = "Its content was cut off before it was stored; send it again."
CUT_OFF_ANEW = "Its new content was cut off before it was stored, and the one before stays; send it again."

_Key = tuple[str, str]


class DocumentIndexing:
    """Works on documents that are `processing`, each in a task of its own, until they are `done` or `failed`."""

    def __init__(
        self,
        documents: Documents,
        index: VectorIndex,
        embedder: Embedder,
        fences: Fences,
        clock: Clock,
        *,
        sweep_seconds: float = 5.0,
    ) -> None:
        self._documents = documents
        self._index = index
        self._embedder = embedder
        self._fences = fences
        self._clock = clock
        self._sweep = Sweep("documents-sweep", self._see_to_unfinished, seconds=sweep_seconds)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._workers: dict[_Key, asyncio.Task[None]] = {}
        self._poked = set[_Key]()
        self._unremoved: dict[str, set[str]] = {}
        self._has_seen_start = False
        self._opened_at = clock()
        self._closing = False

    def start(self) -> None:
        """Begin with what an earlier process left, and look for such again every `sweep_seconds`."""
        self._sweep.start()

    async def close(self) -> None:
        """Stop; what is not done is gone on with after the next start."""
        self._closing = True
        await self._sweep.close()
        tasks = list(self._workers.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def begin(self, document: LibraryDocument) -> None:
        """Work on the document in the background, for as long as an outage lasts."""
        key = (document.user_id, document.id)
        self._poked.add(key)
        if key not in self._workers and not self._closing:
            self._workers[key] = asyncio.create_task(self._work(key), name="document-indexing")

    async def settled(self, document: LibraryDocument, *, seconds: float) -> None:
        """Wait until the document's worker has ended, no longer than `seconds`."""
        worker = self._workers.get((document.user_id, document.id))
        if worker is not None:
            await asyncio.wait({worker}, timeout=seconds)

    async def delete(self, user_id: str, document_id: str) -> bool:
        """Delete the document with its passages and their points; False where there is none.

        First its header names no passages any more: they are found no more, none can be added, and a kill or an outage
        leaves what the sweep ends.
        """
        library = self._documents.library
        while (document := await library.document(user_id=user_id, document_id=document_id)) is not None:
            emptied = document.revised(
                status="processing", error=None, version=0, incoming=0, passages=0, updated_at=self._clock()
            )
            if await library.put(emptied, revision=document.revision):
                await self._remove_emptied((user_id, document_id))
                return True
        return False

    async def remove_points(self, user_id: str, ids: Sequence[str]) -> None:
        """Remove these points of lost passages; while the index is down, the sweep tries again."""
        waiting = self._unremoved.setdefault(user_id, set())
        waiting.update(ids)
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            await self._index.remove(user_id=user_id, ids=batch)
            waiting.difference_update(batch)
        if not waiting:
            self._unremoved.pop(user_id, None)

    async def _work(self, key: _Key) -> None:
        tries = failures = 0
        try:
            while key in self._poked:
                self._poked.discard(key)
                try:
                    async with self._slots:
                        await self._finish(key)
                except UserErased:
                    return
                except Exception as error:  # the boundary of the task
                    _log_waiting(key, error)
                    tries += 1
                    failures += not is_outage(error)
                    if failures >= MAX_ATTEMPTS:
                        await self._give_up(key, error)
                        return
                    self._poked.add(key)
                    await asyncio.sleep(backoff(tries, random.random()).total_seconds())
        finally:
            del self._workers[key]

    async def _finish(self, key: _Key) -> None:
        """Index what the document owes; then it is done."""
        library, (user_id, document_id) = self._documents.library, key
        fence = await self._fences.open(Scope(user_id))
        while (document := await library.document(user_id=user_id, document_id=document_id)) is not None:
            if document.status != "processing" or not document.version:
                return
            owed = await library.passages.owed(user_id=user_id, document_id=document_id, limit=EMBED_BATCH)
            if owed:
                await self._follow(owed, fence)
                await self._touch(document)
                continue
            await self._remove_outdated(key)
            if document.incoming:
                return  # whoever writes it begins again
            done = document.revised(status="done", error=None, updated_at=self._clock())
            if await library.put(done, revision=document.revision):
                logger.info("document indexed", extra={"action": "document_indexed", "document_id": document_id})
                return

    async def _follow(self, owed: Sequence[Passage], fence: Fence) -> None:
        """Make the points of these passages that the index lacks. Those that went meanwhile lose theirs again."""
        user_id, ids = owed[0].user_id, [passage.id for passage in owed]
        dimension = await self._embedder.dimension()
        entries = [passage_entry(passage) for passage in owed]
        lacking = await differing(self._index, entries, model=self._embedder.model, dimension=dimension)
        points = await make_points([*lacking.missing, *lacking.wrong], self._embedder)
        passages = self._documents.library.passages
        async with fence.writing() as writing:
            writing.take_back(lambda: self.remove_points(user_id, ids))
            await self._index.upsert(points)
            marked = await passages.mark_indexed(owed)
        if marked < len(owed):
            there = {passage.id for passage in await passages.passages(user_id=user_id, passage_ids=ids)}
            await self.remove_points(user_id, [lost for lost in ids if lost not in there])

    async def _remove_outdated(self, key: _Key) -> None:
        """Remove what earlier versions have left: points first, so that a kill leaves nothing unknown."""
        passages, (user_id, document_id) = self._documents.library.passages, key
        while old := await passages.outdated(user_id=user_id, document_id=document_id, limit=_BATCH):
            ids = [passage.id for passage in old]
            kept = {passage.id for passage in await passages.passages(user_id=user_id, passage_ids=ids)}
            await self.remove_points(user_id, [lost for lost in ids if lost not in kept])
            await passages.remove(old)

    async def _remove_emptied(self, key: _Key) -> None:
        await self._remove_outdated(key)
        await self._documents.library.remove(user_id=key[0], document_id=key[1])

    async def _touch(self, document: LibraryDocument) -> None:
        """Show other processes that somebody works on it."""
        now = self._clock()
        if now - document.updated_at > timedelta(seconds=TOUCH_SECONDS):
            await self._documents.library.put(document.revised(updated_at=now), revision=document.revision)

    async def _give_up(self, key: _Key, error: Exception) -> None:
        reason = error.message if isinstance(error, RecollectError) else type(error).__name__
        await self._fail(key, f"It could not be indexed: {reason}")

    async def _fail(self, key: _Key, reason: str) -> None:
        library, (user_id, document_id) = self._documents.library, key
        document = await library.document(user_id=user_id, document_id=document_id)
        if document is not None and document.status == "processing":
            failed = document.revised(status="failed", error=reason, incoming=0, updated_at=self._clock())
            await library.put(failed, revision=document.revision)

    async def _see_to_unfinished(self) -> None:
        """Go on with what dead processes left, at the start with everything; give up content that never arrived."""
        now = self._clock()
        for document in await self._documents.library.processing(limit=MOST_PROCESSING):
            key = (document.user_id, document.id)
            untouched = (now - document.updated_at).total_seconds()
            if document.incoming:
                if untouched > CUT_OFF_SECONDS or self._is_of_an_earlier_process(document):
                    await self._fail(key, CUT_OFF_ANEW if document.version else CUT_OFF)
                    await self._remove_outdated(key)
            elif key not in self._workers and (untouched > OTHERS_SECONDS or not self._has_seen_start):
                if document.version:
                    self.begin(document)
                else:  # it was being deleted
                    await self._remove_emptied(key)
        self._has_seen_start = True
        for user_id, ids in list(self._unremoved.items()):
            there = {passage.id for passage in await self._there(user_id, list(ids))}
            ids -= there
            await self.remove_points(user_id, list(ids))

    def _is_of_an_earlier_process(self, document: LibraryDocument) -> bool:
        """Whether nobody can be at work on what was last written then: documents in DATA_DIR have one owner."""
        return not self._documents.erasures.is_shared and document.updated_at < self._opened_at

    async def _there(self, user_id: str, ids: Sequence[str]) -> list[Passage]:
        found = list[Passage]()
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            found += await self._documents.library.passages.passages(user_id=user_id, passage_ids=batch)
        return found


def _log_waiting(key: _Key, error: Exception) -> None:
    known = isinstance(error, RecollectError)
    logger.warning(
        "a document waits to be indexed",
        extra={"action": "document_waits", "document_id": key[1], "error": type(error).__name__},
        exc_info=None if known else error,
    )
