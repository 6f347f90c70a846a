"""Cutting documents into passages. Pure, but for the splitter, which is given."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memory.document_reader import ReadText, Splitter
from memory.library import DocumentKind, LibraryDocument, Passage, passage_id

BETWEEN_PAGES = "\n\n"
MOST_SPACE = 10_000


class Piece(NamedTuple):
    """A piece of a document's text, and the page that it is on (from 1; None where there are no pages)."""

    text: str
    page: int | None


def cut(read: ReadText, kind: DocumentKind, splitter: Splitter) -> list[Piece]:
    """The pieces of a text, each with something in it; joined they are the pages with `BETWEEN_PAGES` between them.

    Of white space that goes on and on, no more than `MOST_SPACE` characters are kept.
    """
    pieces = list[Piece]()
    for piece in _split(read, kind, splitter):
        if piece.text.strip() and (not pieces or pieces[-1].text.strip()):
            pieces.append(piece)
        elif pieces and len(pieces[-1].text) > MOST_SPACE and not piece.text.strip():
            continue
        elif pieces:  # space alone is no passage: it goes with the one before, or behind what it leads
            page = pieces[-1].page if pieces[-1].text.strip() else piece.page
            pieces[-1] = Piece(pieces[-1].text + piece.text, page)
        else:
            pieces.append(piece)
    return pieces


def passages_of(document: LibraryDocument, pieces: Sequence[Piece], *, version: int) -> list[Passage]:
    """The passages of a version of the document. Equal pieces are told apart by how many came before."""
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
    last = len(read.pages) - 1
    for number, text in enumerate(read.pages):
        whole = text if number == last else text + BETWEEN_PAGES
        for piece in splitter.split(whole, kind):
            yield Piece(piece, number + 1 if read.is_paged else None)
