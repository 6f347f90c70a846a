"""Adds, lists, reads and deletes documents, attaches them to threads and detaches them."""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import PurePath
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

from recollect.memory.background.batches import batches
from recollect.memory.background.bulk import Bulk
from recollect.memory.documents.document_indexing import DocumentIndexing
from recollect.memory.documents.document_kind import HEAD_BYTES, kind_of_document
from recollect.memory.documents.passages import Piece, cut_passages, passages_of
from recollect.memory.erasure.fences import Fence, Fences
from recollect.memory.ports.document_reader import DocumentReader, ReadText, Splitter, Walls, checked_text
from recollect.memory.ports.store import Store
from recollect.memory.recall.attachments import Attachments
from recollect.memory.values.document import Attached, Document, DocumentKind, document_id, text_hash
from recollect.memory.values.errors import Forbidden, NotFound
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import Clock

SOON_SECONDS = 5.0
"""Longest time that adding a document waits until search finds it."""
INLINE_CHARACTERS = 20_000
"""Longer texts are cut in a thread, so that the event loop goes on."""
MOST_TITLE = 200
TAKEN = (
    "A document with this source, or without one with this content, is not of the agent that the key is bound to: name "
    "another source."
)
_BATCH = 500
_PIECE = 1_000_000


@frozen
class NewDocument:
    """Describes a document to add. Without a `title` it gets the file's own, the file's name or its first line."""

    title: str | None = None
    domain: str | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str | None = None


@frozen
class Upload:
    """Holds a file on the disk, with the name and the content type that its sender gave."""

    file: BinaryIO
    name: str | None = None
    content_type: str | None = None


@frozen
class _Content:
    """Holds a document's text, cut into pieces; `hash` is that of the file or text, `pages` None without pages."""

    kind: DocumentKind
    hash: str
    pieces: list[Piece]
    characters: int
    pages: int | None


@dataclass
class DocumentService:
    """Does with documents what a person asks for. An owner is a user, or GLOBAL_USER for documents of everybody."""

    store: Store
    reader: DocumentReader
    splitter: Splitter
    indexing: DocumentIndexing
    attachments: Attachments
    fences: Fences
    bulk: Bulk
    config: MemoryConfig
    clock: Clock
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(
        init=False, default_factory=WeakValueDictionary[str, asyncio.Lock]
    )

    async def add_text(self, owner: str, given: NewDocument, text: str, *, agent_id: str | None = None) -> Document:
        """Add a text, or replace the one with the same source; see `add_file`."""
        checked_text(text, most=self.config.max_document_characters, field="text")
        fence = await self.fences.observe(Scope(owner))
        async with nullcontext() if len(text) <= INLINE_CHARACTERS else self.bulk.place():
            content = await self._cut(ReadText([text]), "text", text_hash(text))
        return await self._settled(await self._store(owner, _titled(given, None, text), content, fence, agent_id))

    async def add_file(
        self, owner: str, given: NewDocument, upload: Upload, *, agent_id: str | None = None
    ) -> Document:
        """Add a file's text, or replace the document with the same source (without one: the same content).

        The document is stored when this returns: as `done`, or as `processing` where indexing takes longer than
        `SOON_SECONDS`. Unchanged passages are not embedded again. `agent_id`: the caller sees what has this agent's
        label alone, and replaces nothing else.

        Raises:
            Forbidden: the document that would be replaced has not this label.
            UnsupportedMedia, UnreadableDocument: the file cannot be read.
            Busy: too many files and imports are under way, or the service stops.
            UserErased: the owner was erased meanwhile.
            StoreUnavailable: a part may be stored, which nobody is shown.
        """
        # Observe before the file is read, which may take long: an erasure meanwhile then ends the upload.
        fence = await self.fences.observe(Scope(owner))
        async with self.bulk.place():
            head, digest = await self.bulk.run(lambda: _looked_at(upload.file))
            kind = kind_of_document(upload.name, upload.content_type, head)
            read = await self.reader.read(upload.file, kind)
            content = await self._cut(read, kind, digest)
        titled = _titled(given, read.title or PurePath(upload.name or "").name, read.pages[0])
        return await self._settled(await self._store(owner, titled, content, fence, agent_id))

    async def walls(self) -> Walls:
        """Return what confines the process that reads files."""
        return await self.reader.walls()

    async def document(self, user_id: str, document_id: str) -> Document:
        """Return the user's document of this id, or everybody's.

        Raises:
            NotFound: no document has this id, or it is another user's.
        """
        for owner in dict.fromkeys((user_id, GLOBAL_USER)):
            found = await self.store.documents.document(user_id=owner, document_id=document_id)
            if found is not None:
                return found
        raise _no_such_document()

    async def progress(self, document: Document) -> float:
        """Return the share of the document's passages that search finds, in [0, 1]."""
        if document.status == "done":
            return 1.0
        if not document.version or not document.passages:
            return 0.0
        passages = self.store.documents.passages
        owed = await passages.count_owed(document.user_id, document_id=document.id)
        return max(0.0, 1 - owed / document.passages)

    async def page(
        self, owner: str, *, limit: int, domain: str | None = None, before: tuple[datetime, str] | None = None
    ) -> list[Document]:
        """Return at most `limit` of the owner's documents, newest first, from behind `before`."""
        return await self.store.documents.page(owner, limit=limit, domain=domain, before=before)

    async def text(self, document: Document) -> str:
        """Return the document's whole text."""
        batches = self.store.documents.passages.of_document(user_id=document.user_id, document_id=document.id)
        return "".join([passage.text async for batch in batches for passage in batch])

    async def delete(self, owner: str, document_id: str) -> None:
        """Delete the document, its passages and their points, and detach it from every thread.

        Raises:
            NotFound: the owner has none of this id.
            IndexUnavailable: search finds nothing of it any more; the rest is deleted when the index is back.
        """
        if not await self.indexing.delete(owner, document_id):
            raise _no_such_document()

    async def attach(self, scope: Scope, document_id: str) -> Attached:
        """Attach the user's document, or everybody's, to the thread, which need not exist yet; a repeat does nothing.

        Raises:
            NotFound: no document has this id, or it is another user's.
            UserErased: the user was erased meanwhile.
        """
        documents = self.store.documents
        async with self.fences.writing(scope.user_id, scope.thread_id) as writing:
            document = await self.document(scope.user_id, document_id)
            # Register before the write: an erasure may end this task while it is under way.
            writing.on_erased(lambda: documents.detach(scope, document_id=document_id))
            await documents.attach(scope, document, at=self.clock())
        for attached in await documents.attached(scope):
            if attached.document.id == document_id:
                return attached
        raise _no_such_document()

    async def detach(self, scope: Scope, document_id: str) -> None:
        """Detach the document from the thread.

        Raises:
            NotFound: it is not attached.
        """
        if not await self.store.documents.detach(scope, document_id=document_id):
            raise NotFound("No such document is attached to this thread.")

    async def attached(self, scope: Scope) -> list[Attached]:
        """Return the thread's attached documents, in the order of attaching."""
        return await self.store.documents.attached(scope)

    async def _cut(self, read: ReadText, kind: DocumentKind, digest: str) -> _Content:
        """Cut the text into pieces, a long one in a thread."""
        if read.characters <= INLINE_CHARACTERS:
            pieces = cut_passages(read, kind, self.splitter)
        else:
            pieces = await self.bulk.run(lambda: cut_passages(read, kind, self.splitter))
        pages = len(read.pages) if read.is_paged else None
        return _Content(kind, digest, pieces, sum(len(piece.text) for piece in pieces), pages)

    async def _settled(self, document: Document) -> Document:
        """Index the document, and return it as it is when that is done, or after `SOON_SECONDS`.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        if document.status != "processing":
            return document
        self.indexing.begin(document)
        await self.indexing.settled(document, seconds=SOON_SECONDS)
        found = await self.store.documents.document(user_id=document.user_id, document_id=document.id)
        if found is None:
            raise NotFound("The document was deleted while it was added.")
        return found

    async def _store(
        self, owner: str, given: NewDocument, content: _Content, fence: Fence, agent_id: str | None
    ) -> Document:
        """Store the document with this content, and return it; it may have yet to be indexed."""
        key = document_id(owner, source=given.source, content_hash=content.hash)
        documents = self.store.documents
        # One upload of a document at a time in this process; between processes the header's revision decides.
        async with self._locks.setdefault(key, asyncio.Lock()), fence.writing() as writing:
            # Register the removal before the first write: an erasure may end this task between any two of them.
            writing.on_erased(lambda: documents.remove(user_id=owner, document_id=key))
            while True:
                old = await documents.document(user_id=owner, document_id=key)
                if old is not None and agent_id not in (None, old.agent_id):
                    raise Forbidden(TAKEN)
                stored = await self._put(old or self._blank(owner, key, content), given, content)
                if stored is not None:
                    return stored

    def _blank(self, owner: str, key: str, content: _Content) -> Document:
        """Return a document that is not stored yet: without version and passages."""
        now = self.clock()
        return Document(key, owner, "", content.kind, "", created_at=now, updated_at=now)

    async def _put(self, old: Document, given: NewDocument, content: _Content) -> Document | None:
        """Store this content in place of `old`'s, and return the document; None where `old` was changed meanwhile.

        The write has two phases: the header first names the version that is `incoming`, then the passages are written,
        then one write of the header makes them the document's. Until then readers see the old content, and a kill
        leaves passages of a version that no header names, which indexing removes.
        """
        documents, now = self.store.documents, self.clock()
        said: dict[str, Any] = {"title": given.title, "domain": given.domain, "metadata": given.metadata}
        said["agent_id"] = given.agent_id
        if old.version and not old.incoming and old.content_hash == content.hash and old.status != "failed":
            told = old.revised(**said, updated_at=now)
            if all(getattr(old, name) == value for name, value in said.items()):
                return old
            return told if await documents.put(told, revision=old.revision) else None
        version = old.revision + 1
        begun = old.revised(status="processing", error=None, incoming=version, source=given.source, updated_at=now)
        if not old.version:
            begun = replace(begun, **said)
        # First phase: a header with a new revision, which wins over any other upload that read the same `old`.
        if not await documents.put(begun, revision=old.revision):
            return None
        self.attachments.notice()
        passages = passages_of(begun, content.pieces, version=version)
        for batch in batches(passages, _BATCH):
            if not await documents.passages.add(batch):
                return None
        # Second phase, one write: it fails where a later upload or a deletion has written the header since `begun`.
        named = begun.revised(
            **said,
            kind=content.kind,
            content_hash=content.hash,
            characters=content.characters,
            pages=content.pages,
            passages=len(passages),
            version=version,
            incoming=0,
            updated_at=self.clock(),
        )
        return named if await documents.put(named, revision=begun.revision) else None


def _titled(given: NewDocument, own: str | None, text: str) -> NewDocument:
    """Return `given` with a title: its own, else `own`, else the first line of `text`."""
    first = text.lstrip()[:MOST_TITLE].partition("\n")[0].strip("# \r\t")
    return replace(given, title=given.title or (own or "").strip()[:MOST_TITLE] or first or "Untitled")


def _looked_at(file: BinaryIO) -> tuple[bytes, str]:
    """Read the whole file; return its first `HEAD_BYTES` and the digest of all bytes."""
    file.seek(0)
    head, digest = b"", blake2b(digest_size=16)
    while piece := file.read(_PIECE):
        head = head or piece[:HEAD_BYTES]
        digest.update(piece)
    return head, digest.hexdigest()


def _no_such_document() -> NotFound:
    return NotFound("There is no such document, or it is another user's.")
