"""Documents as lines of an export: a header, and its passages a part at a time."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from memory.export_lines import Line
from memory.exported import ExportedDocument, ExportedPassage
from memory.library import Library, LibraryDocument, Passage
from memory.plain_values import to_plain

_PAGE = 100
MOST_PART_CHARACTERS = 200_000
"""A part's text, so that its line stays far below the longest that an import takes."""


async def document_lines(library: Library, user_id: str) -> AsyncIterator[Sequence[Line]]:
    """The user's documents, newest first, one line at a time: of each its parts in their order.

    One whose content is still to come is none yet.
    """
    before: tuple[datetime, str] | None = None
    while page := await library.page(user_id, limit=_PAGE, before=before):
        for document in page:
            if not document.version and document.error is None:
                continue
            async for line in _parts(library, document):
                yield [line]
        before = (page[-1].created_at, page[-1].id)


async def _parts(library: Library, document: LibraryDocument) -> AsyncIterator[Line]:
    """Every part but the last says that another follows."""
    kept: list[Passage] = []
    number = 1
    async for passages in library.passages.of_document(user_id=document.user_id, document_id=document.id):
        for passage in passages:
            if kept and sum(len(one.text) for one in kept) + len(passage.text) > MOST_PART_CHARACTERS:
                yield _line(document, kept, number, is_last=False)
                kept, number = [], number + 1
            kept.append(passage)
    yield _line(document, kept, number, is_last=True)


def _line(document: LibraryDocument, passages: Sequence[Passage], number: int, *, is_last: bool) -> Line:
    shown = ExportedDocument(
        user_id=document.user_id,
        id=document.id,
        title=document.title,
        kind=document.kind,
        content_hash=document.content_hash,
        created_at=document.created_at,
        part=number,
        is_last=is_last,
        passages=tuple(ExportedPassage(one.text, one.page) for one in passages),
        domain=document.domain,
        source=document.source,
        metadata=dict(document.metadata) or None,
        error=document.error,
        characters=document.characters,
        pages=document.pages,
    )
    return {"type": "document", **to_plain(shown, sparse=True)}
