"""What a person can do with documents: add, list, read, delete, attach to a thread and detach."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import PurePath
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

from memory.document_indexing import DocumentIndexing
from memory.document_kind import HEAD_BYTES, kind_of
from memory.document_reader import DocumentReader, ReadText, Splitter, checked_text
from memory.documents import Documents
from memory.errors import NotFound
from memory.fences import Fence, Fences
from memory.library import Attached, DocumentKind, LibraryDocument, document_id, text_hash
from memory.mem_config import MemoryConfig
from memory.passages import Piece, cut, passages_of
from memory.scope import GLOBAL_USER, Scope
from memory.shelf import Shelf
from memory.times import Clock

SOON_SECONDS = 5.0
"""How long somebody who adds a document waits for it to be findable."""
INLINE_CHARACTERS = 20_000
"""Longer texts are cut in a thread."""
MOST_TITLE = 200
_BATCH = 500
_PIECE = 1_000_000


@dataclass(frozen=True, slots=True)
class NewDocument:
    """What is said of a document that is added. Without a `title` it has its own, its file's name or its beginning."""

    title: str | None = None
    domain: str | None = None
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on the disk, with the name and the content type that its sender gave."""

    file: BinaryIO
    name: str | None = None
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class _Content:
    """What a document says, cut into pieces."""

    kind: DocumentKind
    hash: str
    pieces: list[Piece]
    characters: int
    pages: int | None


@dataclass
class DocumentBook:
    """The verbs on documents. An owner is a user, or GLOBAL_USER for everybody's."""

    documents: Documents
    reader: DocumentReader
    splitter: Splitter
    indexing: DocumentIndexing
    shelf: Shelf
    fences: Fences
    config: MemoryConfig
    clock: Clock
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(
        init=False, default_factory=WeakValueDictionary[str, asyncio.Lock]
    )

    async def add_text(self, owner: str, given: NewDocument, text: str) -> LibraryDocument:
        """Add a text, or replace the one with the same source; see `add_file`."""
        checked_text(text, most=self.config.max_document_characters, field="text")
        fence = await self.fences.open(Scope(owner))
        content = await self._cut(ReadText([text]), "text", text_hash(text))
        return await self._settled(await self._store(owner, _titled(given, None, text), content, fence))

    async def add_file(self, owner: str, given: NewDocument, upload: Upload) -> LibraryDocument:
        """Add a file's text, or replace the document with the same source (without one: the same content).

        The document is stored when this returns, as `done`, or as `processing` where that takes longer than
        `SOON_SECONDS`. Passages that stay as they were are not embedded again.

        Raises:
            UnsupportedMedia, UnreadableDocument: the file is none that can be read.
            UserErased: the owner was erased meanwhile.
            StoreUnavailable: it may be stored in part, and is then no document.
        """
        fence = await self.fences.open(Scope(owner))
        head, digest = await asyncio.to_thread(_looked_at, upload.file)
        kind = kind_of(upload.name, upload.content_type, head)
        read = await self.reader.read(upload.file, kind)
        content = await self._cut(read, kind, digest)
        titled = _titled(given, read.title or PurePath(upload.name or "").name, read.pages[0])
        return await self._settled(await self._store(owner, titled, content, fence))

    async def document(self, user_id: str, document_id: str) -> LibraryDocument:
        """One of the user's documents, or everybody's.

        Raises:
            NotFound: there is none of this id, or it is another user's.
        """
        for owner in dict.fromkeys((user_id, GLOBAL_USER)):
            found = await self.documents.library.document(user_id=owner, document_id=document_id)
            if found is not None:
                return found
        raise _no_such_document()

    async def progress(self, document: LibraryDocument) -> float:
        """How much of the document can be found, in [0, 1]."""
        if document.status == "done":
            return 1.0
        if not document.version or not document.passages:
            return 0.0
        passages = self.documents.library.passages
        owed = await passages.count_owed(document.user_id, document_id=document.id)
        return max(0.0, 1 - owed / document.passages)

    async def page(
        self, owner: str, *, limit: int, domain: str | None = None, before: tuple[datetime, str] | None = None
    ) -> list[LibraryDocument]:
        """The owner's documents, newest first."""
        return await self.documents.library.page(owner, limit=limit, domain=domain, before=before)

    async def text(self, document: LibraryDocument) -> str:
        """The whole text."""
        batches = self.documents.library.passages.of_document(user_id=document.user_id, document_id=document.id)
        return "".join([passage.text async for batch in batches for passage in batch])

    async def delete(self, owner: str, document_id: str) -> None:
        """Delete the document, its passages and their points, and take it from every thread.

        Raises:
            NotFound: the owner has none of this id.
            IndexUnavailable: nothing of it is found any more; it goes altogether when the index is back.
        """
        if not await self.indexing.delete(owner, document_id):
            raise _no_such_document()

    async def attach(self, scope: Scope, document_id: str) -> Attached:
        """Attach a document of the user's, or everybody's, to the thread, which need not exist yet; twice is once.

        Raises:
            NotFound: there is none of this id, or it is another user's.
            UserErased: the user was erased meanwhile.
        """
        library = self.documents.library
        async with self.fences.writing(scope.user_id, scope.thread_id) as writing:
            document = await self.document(scope.user_id, document_id)
            writing.take_back(lambda: library.detach(scope, document_id=document_id))
            await library.attach(scope, document, at=self.clock())
        for attached in await library.attached(scope):
            if attached.document.id == document_id:
                return attached
        raise _no_such_document()

    async def detach(self, scope: Scope, document_id: str) -> None:
        """Take the document from the thread.

        Raises:
            NotFound: it is not attached.
        """
        if not await self.documents.library.detach(scope, document_id=document_id):
            raise NotFound("No such document is attached to this thread.")

    async def attached(self, scope: Scope) -> list[Attached]:
        """What the thread has attached, in the order of attaching."""
        return await self.documents.library.attached(scope)

    async def _cut(self, read: ReadText, kind: DocumentKind, digest: str) -> _Content:
        if read.characters <= INLINE_CHARACTERS:
            pieces = cut(read, kind, self.splitter)
        else:
            pieces = await asyncio.to_thread(cut, read, kind, self.splitter)
        pages = len(read.pages) if read.is_paged else None
        return _Content(kind, digest, pieces, sum(len(piece.text) for piece in pieces), pages)

    async def _settled(self, document: LibraryDocument) -> LibraryDocument:
        """The document once it can be found, or as it is after a while."""
        if document.status != "processing":
            return document
        self.indexing.begin(document)
        await self.indexing.settled(document, seconds=SOON_SECONDS)
        found = await self.documents.library.document(user_id=document.user_id, document_id=document.id)
        if found is None:
            raise NotFound("The document was deleted while it was added.")
        return found

    async def _store(self, owner: str, given: NewDocument, content: _Content, fence: Fence) -> LibraryDocument:
        """The document with this content, stored; it may have to be indexed yet."""
        key = document_id(owner, source=given.source, content_hash=content.hash)
        library = self.documents.library
        async with self._locks.setdefault(key, asyncio.Lock()), fence.writing() as writing:
            writing.take_back(lambda: library.remove(user_id=owner, document_id=key))
            while True:
                old = await library.document(user_id=owner, document_id=key)
                stored = await self._put(old or self._blank(owner, key, content), given, content)
                if stored is not None:
                    return stored

    def _blank(self, owner: str, key: str, content: _Content) -> LibraryDocument:
        now = self.clock()
        return LibraryDocument(key, owner, "", content.kind, "", created_at=now, updated_at=now)

    async def _put(self, old: LibraryDocument, given: NewDocument, content: _Content) -> LibraryDocument | None:
        """The document with this content in place of `old`'s; None where `old` was changed at the same time."""
        library, now = self.documents.library, self.clock()
        said: dict[str, Any] = {"title": given.title, "domain": given.domain, "metadata": given.metadata}
        if old.version and not old.incoming and old.content_hash == content.hash and old.status != "failed":
            told = old.revised(**said, updated_at=now)
            if all(getattr(old, name) == value for name, value in said.items()):
                return old
            return told if await library.put(told, revision=old.revision) else None
        version = old.revision + 1
        begun = old.revised(status="processing", error=None, incoming=version, source=given.source, updated_at=now)
        if not old.version:
            begun = replace(begun, **said)
        if not await library.put(begun, revision=old.revision):
            return None
        self.shelf.notice()
        passages = passages_of(begun, content.pieces, version=version)
        for start in range(0, len(passages), _BATCH):
            if not await library.passages.add(passages[start : start + _BATCH]):
                return None
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
        return named if await library.put(named, revision=begun.revision) else None


def _titled(given: NewDocument, own: str | None, text: str) -> NewDocument:
    """The same with a title in any case."""
    first = text.lstrip()[:MOST_TITLE].partition("\n")[0].strip("# \r\t")
    return replace(given, title=given.title or (own or "").strip()[:MOST_TITLE] or first or "Untitled")


def _looked_at(file: BinaryIO) -> tuple[bytes, str]:
    """The file's first bytes, and the digest of all."""
    file.seek(0)
    head, digest = b"", blake2b(digest_size=16)
    while piece := file.read(_PIECE):
        head = head or piece[:HEAD_BYTES]
        digest.update(piece)
    return head, digest.hexdigest()


def _no_such_document() -> NotFound:
    return NotFound("There is no such document, or it is another user's.")
