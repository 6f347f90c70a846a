"""Cuts documents into passages, with a splitter that the caller gives; pure otherwise."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.memory.ports.document_reader import ReadText, Splitter
from recollect.memory.values.document import Document, DocumentKind, Passage, passage_id

BETWEEN_PAGES = "\n\n"
MOST_SPACE = 10_000


class Piece(NamedTuple):
    """Holds a piece of a document's text, and its page (from 1; None in a document without pages)."""

    text: str
    page: int | None


def cut_passages(read: ReadText, kind: DocumentKind, splitter: Splitter) -> list[Piece]:
    """Cut `read` into pieces that are not blank; joined, they are the pages with `BETWEEN_PAGES` between them.

    White space at the end of a piece is cut off once it makes the piece longer than `MOST_SPACE` characters.
    """
    pieces = list[Piece]()
    for piece in _split(read, kind, splitter):
        if piece.text.strip() and (not pieces or pieces[-1].text.strip()):
            pieces.append(piece)
        elif pieces and len(pieces[-1].text) > MOST_SPACE and not piece.text.strip():
            continue
        elif pieces:  # a blank piece is no passage: join it to its neighbour
            page = pieces[-1].page if pieces[-1].text.strip() else piece.page
            pieces[-1] = Piece(pieces[-1].text + piece.text, page)
        else:
            pieces.append(piece)
    return pieces


def passages_of(document: Document, pieces: Sequence[Piece], *, version: int) -> list[Passage]:
    """Return the passages of a `version` of the document; ids of equal pieces differ by how many came before."""
    seen = Counter[str]()
    passages = list[Passage]()
    for place, piece in enumerate(pieces):
        said = piece.text.strip()
        passages.append(
            Passage(
                id=passage_id(document.user_id, document.id, said, seen[said]),
                user_id=document.user_id,
                document_id=document.id,
                version=version,
                place=place,
                text=piece.text,
                created_at=document.created_at,
                page=piece.page,
            )
        )
        seen[said] += 1
    return passages


def _split(read: ReadText, kind: DocumentKind, splitter: Splitter) -> Iterator[Piece]:
    """Split each page by itself: a piece is on one page."""
    last = len(read.pages) - 1
    for number, text in enumerate(read.pages):
        whole = text if number == last else text + BETWEEN_PAGES
        for piece in splitter.split(whole, kind):
            yield Piece(piece, number + 1 if read.is_paged else None)
