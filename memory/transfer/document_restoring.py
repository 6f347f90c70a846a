"""Stores a document of an export for its owner; it is indexed in the background, like any other document."""

from collections.abc import Sequence
from dataclasses import replace

from recollect.memory.background.batches import batches
from recollect.memory.documents.passages import Piece, passages_of
from recollect.memory.erasure.fences import Writing
from recollect.memory.memory import Memory
from recollect.memory.transfer.exported import ExportedDocument
from recollect.memory.values.document import Document, document_id

MOST_PASSAGE_CHARACTERS = 100_000
OTHER_PARTS = "The parts of the document say different things of it."
OTHER_ID = "id is not the document's: it derives from its owner, and its source or its content."
NO_TEXT = "The document has no text."
DELETED = "It was deleted while it was imported; import it again."
_BATCH = 500


async def restore_document(memory: Memory, parts: Sequence[ExportedDocument], writing: Writing) -> bool | str:
    """Store the document and return True; False where it is stored already, a sentence where it cannot be taken.

    Raises:
        StoreUnavailable: a part may be stored, which nobody is shown; a repeat of the lines completes it.
    """
    header, documents = parts[0], memory.parts.store.documents
    pieces = [Piece(passage.text, passage.page) for part in parts for passage in part.passages]
    problem = _problem(parts, pieces, most=memory.config.max_document_characters)
    if problem is not None:
        return problem
    old = await documents.document(user_id=header.user_id, document_id=header.id)
    if old is not None and (old.version or not pieces):
        return False
    if old is None:
        writing.on_erased(lambda: documents.remove(user_id=header.user_id, document_id=header.id))
    memory.documents.attachments.notice()
    stored = await _put(memory, header, pieces, old.revision if old is not None else 0)
    if stored is None:
        return DELETED
    if stored.status == "processing":
        memory.documents.indexing.begin(stored)
    return True


def _problem(parts: Sequence[ExportedDocument], pieces: Sequence[Piece], *, most: int) -> str | None:
    """Return why the document cannot be taken, or None."""
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


async def _put(memory: Memory, header: ExportedDocument, pieces: Sequence[Piece], revision: int) -> Document | None:
    """Store the document and return it; None where it was deleted meanwhile.

    The header first names the incoming version, then the passages are written, then one conditional write of the header
    makes them the document's: a kill in between leaves no document.
    """
    documents, now, version = memory.parts.store.documents, memory.now(), revision + 1
    begun = Document(
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
        agent_id=header.agent_id,
        status="processing" if pieces else "failed",
        error=None if pieces else header.error,
        incoming=version if pieces else 0,
        revision=version,
    )
    if not await documents.put(begun, revision=revision):
        return None
    if not pieces:
        return begun
    passages = passages_of(begun, pieces, version=version)
    for batch in batches(passages, _BATCH):
        if not await documents.passages.add(batch):
            return None
    named = begun.revised(
        characters=header.characters, pages=header.pages, passages=len(passages), version=version, incoming=0
    )
    return named if await documents.put(named, revision=begun.revision) else None
