"""The ports of the code that reads files and splits texts: small Protocols, implemented by providers."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import BinaryIO, Protocol

from recollect.memory.values.document import DocumentKind
from recollect.memory.values.errors import Problem, UnreadableDocument
from recollect.memory.values.frozen import frozen
from recollect.memory.values.text import text_problem


@frozen
class ReadText:
    """The text of a document: one text a page, or one in all for a kind without pages; its title, where it has one."""

    pages: Sequence[str]
    is_paged: bool = False
    title: str | None = None

    @property
    def characters(self) -> int:
        """The length of all pages together."""
        return sum(map(len, self.pages))


@frozen
class Walls:
    """The sandbox of a file's reader: the names of the barriers in force, and of those that this machine lacks."""

    in_force: tuple[str, ...]
    missing: tuple[str, ...]


class DocumentReader(Protocol):
    """Reads untrusted files."""

    @abstractmethod
    async def walls(self) -> Walls:
        """Return which barriers confine the reading of files on this machine."""
        ...

    @abstractmethod
    async def read(self, file: BinaryIO, kind: DocumentKind) -> ReadText:
        """Return the text of a file of this kind, read from its beginning.

        Raises:
            UnreadableDocument: it is broken, encrypted, holds macros, has no text, or is over a limit.
        """
        ...


class Splitter(Protocol):
    """Splits texts into pieces that are embedded one by one."""

    @abstractmethod
    def split(self, text: str, kind: DocumentKind) -> list[str]:
        """Return the pieces of `text`, which joined are the text again.

        It blocks: callers split long texts in a thread.
        """
        ...


def unreadable(problem: str, *, field: str = "file") -> UnreadableDocument:
    """Return the error of a document that cannot be read; `problem` says why, without its text."""
    return UnreadableDocument(f"The document cannot be read: it {problem}.", problems=[Problem(field, problem)])


def checked_text(text: str, *, most: int, field: str = "file") -> str:
    """Return the text if it can be stored.

    Raises:
        UnreadableDocument: it is empty, longer than `most` characters, or no store can hold it.
    """
    if len(text) > most:
        raise unreadable(f"has more than {most:,} characters (MAX_DOCUMENT_CHARACTERS)", field=field)
    problem = text_problem(text)
    if problem is not None:
        raise unreadable(f"cannot be kept: it {problem}", field=field)
    if not text.strip():
        raise unreadable("has no text", field=field)
    return text
