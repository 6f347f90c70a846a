"""Splits texts by langchain-text-splitters: at headings and paragraphs first, then at lines, sentences and words."""

from typing import TYPE_CHECKING

from typing_extensions import override

from recollect.memory.ports.document_reader import Splitter
from recollect.memory.values.document import DocumentKind

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

MOST_CHARACTERS = 1_000
"""Of one piece: small embedders read about 250 tokens and leave the rest out."""
_PLAIN = [r"\n[ \t]*\n", r"\n", r"(?<=[.!?…])\s", r"\s", ""]


class LangChainSplitter(Splitter):
    """Splits into pieces of at most `MOST_CHARACTERS`, which join to the text. Imports its library at first use."""

    def __init__(self) -> None:
        self._made: dict[bool, RecursiveCharacterTextSplitter] = {}

    @override
    def split(self, text: str, kind: DocumentKind) -> list[str]:
        is_plain = kind in {"text", "pdf"}
        if is_plain not in self._made:
            self._made[is_plain] = _splitter(is_plain)
        return self._made[is_plain].split_text(text)


def _splitter(is_plain: bool) -> "RecursiveCharacterTextSplitter":
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter

    separators = _PLAIN if is_plain else RecursiveCharacterTextSplitter.get_separators_for_language(Language.MARKDOWN)
    return RecursiveCharacterTextSplitter(
        separators=separators,
        is_separator_regex=True,
        keep_separator=True,
        strip_whitespace=False,
        chunk_size=MOST_CHARACTERS,
        chunk_overlap=0,
    )
