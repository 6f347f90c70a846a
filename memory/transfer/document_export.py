"""Exports documents as lines: each line has the header and a part of the passages."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from recollect.memory.ports.documents import Documents
from recollect.memory.transfer.export_lines import Line
from recollect.memory.transfer.exported import ExportedDocument, ExportedPassage
from recollect.memory.transfer.plain_values import to_plain
from recollect.memory.values.document import Document, Passage
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import document_item

_PAGE = 100
MOST_PART_CHARACTERS = 200_000
"""Most characters of a part's text: its line stays far below the longest that an import takes."""


async def document_lines(
    documents: Documents, user_id: str, *, asked: Filter | None = None
) -> AsyncIterator[Sequence[Line]]:
    """Yield the parts of the user's documents, one line at a time: newest document first, parts in their order.

    A document whose first content is still incoming is left out, and one that does not fulfil the filter `asked`.
    """
    before: tuple[datetime, str] | None = None
    while page := await documents.page(user_id, limit=_PAGE, before=before):
        for document in page:
            if not document.version and document.error is None:
                continue
            if asked is not None and not asked.fulfilled(document_item(document)):
                continue
            async for line in _parts(documents, document):
                yield [line]
        before = (page[-1].created_at, page[-1].id)


async def _parts(documents: Documents, document: Document) -> AsyncIterator[Line]:
    """Yield the document's parts; only the last says that it is the last."""
    kept: list[Passage] = []
    number = 1
    async for passages in documents.passages.of_document(user_id=document.user_id, document_id=document.id):
        for passage in passages:
            if kept and sum(len(one.text) for one in kept) + len(passage.text) > MOST_PART_CHARACTERS:
                yield _line(document, kept, number, is_last=False)
                kept, number = [], number + 1
            kept.append(passage)
    yield _line(document, kept, number, is_last=True)


def _line(document: Document, passages: Sequence[Passage], number: int, *, is_last: bool) -> Line:
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
        agent_id=document.agent_id,
    )
    return {"type": "document", **to_plain(shown, sparse=True)}
