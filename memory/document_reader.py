"""The seams to whoever reads files and splits texts: small Protocols, implemented by providers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from memory.errors import Problem, UnreadableDocument
from memory.library import DocumentKind
from memory.text import text_problem


@dataclass(frozen=True, slots=True)
class ReadText:
    """What a document says: the texts of its pages, or one for a kind without pages; its title, where it names one."""

    pages: Sequence[str]
    is_paged: bool = False
    title: str | None = None

    @property
    def characters(self) -> int:
        """How long all of it is."""
        return sum(map(len, self.pages))


class DocumentReader(Protocol):
    """Reads files that nobody trusts."""

    async def read(self, file: BinaryIO, kind: DocumentKind) -> ReadText:
        """The text of a file on the disk, from its beginning.

        Raises:
            UnreadableDocument: it is broken, encrypted, holds macros, has no text, or is over a limit.
        """
        ...


class Splitter(Protocol):
    """Splits texts into pieces that are embedded one by one."""

    def split(self, text: str, kind: DocumentKind) -> list[str]:
        """The pieces, which joined are the text again. It blocks: long texts are split in a thread."""
        ...


def unreadable(problem: str, *, field: str = "file") -> UnreadableDocument:
    """The error of a document that cannot be read: `problem` says why, without its text."""
    return UnreadableDocument(f"The document cannot be read: it {problem}.", problems=[Problem(field, problem)])


def checked_text(text: str, *, most: int, field: str = "file") -> str:
    """The text, if it is one that can be kept.

    Raises:
        UnreadableDocument: there is none, or it is too long, or no store can hold it.
    """
    if len(text) > most:
        raise unreadable(f"has more than {most:,} characters (MAX_DOCUMENT_CHARACTERS)", field=field)
    problem = text_problem(text)
    if problem is not None:
        raise unreadable(f"cannot be kept: it {problem}", field=field)
    if not text.strip():
        raise unreadable("has no text", field=field)
    return text
