import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.memory.documents.passages import BETWEEN_PAGES, MOST_SPACE, cut_passages, passages_of
from recollect.memory.ports.document_reader import ReadText
from recollect.memory.providers.splitter import MOST_CHARACTERS, LangChainSplitter
from recollect.memory.values.document import Document, DocumentKind
from tests.contracts.store.samples import NOW

SPLITTER = LangChainSplitter()
DOCUMENT = Document("d", "ada", "t", "text", "0", created_at=NOW, updated_at=NOW)
WORDS = st.sampled_from(["tea", "ships.", "\n\n", "\n", " ", "# Head\n", "```", "***\n", "x" * 700, "\t", "…", "é"])
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)
KINDS: list[DocumentKind] = ["text", "markdown"]


@pytest.mark.parametrize("kind", KINDS)
@given(pages=st.lists(TEXTS, min_size=1, max_size=4))
@example(pages=["", " ", "a"])
@example(pages=[" " * 3_000 + "a" + "\n" * 3_000])
@settings(deadline=None, max_examples=60)
def test_the_pieces_are_the_text_and_none_is_empty(kind: DocumentKind, pages: list[str]) -> None:
    pieces = cut_passages(ReadText(pages), kind, SPLITTER)
    text = BETWEEN_PAGES.join(pages)
    assert "".join(piece.text for piece in pieces) == text
    if text.strip():
        assert all(piece.text.strip() for piece in pieces)
        assert all(len(piece.text.strip()) <= MOST_CHARACTERS for piece in pieces)


def test_endless_space_is_cut_short() -> None:
    pieces = cut_passages(ReadText([f"a{' ' * 50_000}b"]), "text", SPLITTER)
    text = "".join(piece.text for piece in pieces)
    assert text.split() == ["a", "b"]
    assert len(text) <= MOST_SPACE + 2 * MOST_CHARACTERS


def test_pieces_know_their_pages() -> None:
    long = "Ships come and go. " * 80
    pieces = cut_passages(ReadText(["one", "", long, "four"], is_paged=True), "pdf", SPLITTER)
    assert [piece.page for piece in pieces] == [1, 3, 3, 4]
    assert {piece.page for piece in cut_passages(ReadText([long]), "text", SPLITTER)} == {None}


def test_the_same_text_keeps_its_id_wherever_it_stands() -> None:
    first = cut_passages(ReadText(["one", "two", "two", "three"], is_paged=True), "pdf", SPLITTER)
    second = cut_passages(ReadText(["new", "two", "one", "two"], is_paged=True), "pdf", SPLITTER)
    before = {passage.id: passage for passage in passages_of(DOCUMENT, first, version=1)}
    after = {passage.id: passage for passage in passages_of(DOCUMENT, second, version=2)}
    assert len(before) == len(after) == 4
    assert sorted(after[kept].said for kept in before.keys() & after.keys()) == ["one", "two", "two"]
    assert [passage.place for passage in after.values()] == [0, 1, 2, 3]
    assert {passage.version for passage in after.values()} == {2}
