"""A document of an export, stored as its owner's; it is indexed behind the import, like any other."""

from collections.abc import Sequence
from dataclasses import replace

from memory.exported import ExportedDocument
from memory.fences import Writing
from memory.library import LibraryDocument, document_id
from memory.memory import Memory
from memory.passages import Piece, passages_of

MOST_PASSAGE_CHARACTERS = 100_000
OTHER_PARTS = "The parts of the document say different things of it."
OTHER_ID = "id is not the document's: it derives from its owner, and its source or its content."
NO_TEXT = "The document has no text."
DELETED = "It was deleted while it was imported; import it again."
_BATCH = 500


async def restore_document(memory: Memory, parts: Sequence[ExportedDocument], writing: Writing) -> bool | str:
    """Store the document with its passages; False where it is there already, a sentence where it cannot be taken.

    Raises:
        StoreUnavailable: it may be stored in part, and is then no document; the same again completes it.
    """
    header, library = parts[0], memory.documents.library
    pieces = [Piece(passage.text, passage.page) for part in parts for passage in part.passages]
    problem = _problem(parts, pieces, most=memory.config.max_document_characters)
    if problem is not None:
        return problem
    old = await library.document(user_id=header.user_id, document_id=header.id)
    if old is not None and (old.version or not pieces):
        return False
    if old is None:
        writing.take_back(lambda: library.remove(user_id=header.user_id, document_id=header.id))
    memory.library.shelf.notice()
    stored = await _put(memory, header, pieces, old.revision if old is not None else 0)
    if stored is None:
        return DELETED
    if stored.status == "processing":
        memory.library.indexing.begin(stored)
    return True


def _problem(parts: Sequence[ExportedDocument], pieces: Sequence[Piece], *, most: int) -> str | None:
    """Why the document cannot be taken."""
    header = parts[0]
    if any(replace(part, part=1, is_last=header.is_last, passages=header.passages) != header for part in parts):
        return OTHER_PARTS
    if header.id != document_id(header.user_id, source=header.source, content_hash=header.content_hash):
        return OTHER_ID
    if not pieces and header.error is None:
        return NO_TEXT
    characters = sum(len(piece.text) for piece in pieces)
    if characters > most:
        return f"The document has more than {most:,} characters (MAX_DOCUMENT_CHARACTERS)."
    if not 0 <= header.characters <= characters:
        return "characters says more than the document has."
    if not all(piece.text.strip() and len(piece.text) <= MOST_PASSAGE_CHARACTERS for piece in pieces):
        return f"Each passage must have 1 to {MOST_PASSAGE_CHARACTERS:,} characters."
    return None


async def _put(
    memory: Memory, header: ExportedDocument, pieces: Sequence[Piece], revision: int
) -> LibraryDocument | None:
    """The stored document, its passages written first; None where it was deleted meanwhile."""
    library, now, version = memory.documents.library, memory.clock(), revision + 1
    begun = LibraryDocument(
        id=header.id,
        user_id=header.user_id,
        title=header.title,
        kind=header.kind,
        content_hash=header.content_hash,
        created_at=header.created_at,
        updated_at=now,
        domain=header.domain,
        source=header.source,
        metadata=header.metadata or {},
        status="processing" if pieces else "failed",
        error=None if pieces else header.error,
        incoming=version if pieces else 0,
        revision=version,
    )
    if not await library.put(begun, revision=revision):
        return None
    if not pieces:
        return begun
    passages = passages_of(begun, pieces, version=version)
    for start in range(0, len(passages), _BATCH):
        if not await library.passages.add(passages[start : start + _BATCH]):
            return None
    named = begun.revised(
        characters=header.characters, pages=header.pages, passages=len(passages), version=version, incoming=0
    )
    return named if await library.put(named, revision=begun.revision) else None
