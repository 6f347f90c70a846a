from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.front_matter import NoFrontMatter, from_markdown, to_markdown
from tests.contracts.documents.samples import NASTY_METADATA, NASTY_TEXTS

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
NASTY = [
    *NASTY_TEXTS,
    "---",
    "---\ntype: fact\n---\n",
    "\n\n leading and trailing \n\n",
    "a\r\nb\rc\n",
    "\u2028\u2029\x85\x0b\x0c\ufeff",
    "2026-01-31",
    "1_000",
    "0o17",
    "yes",
    "null",
    "~",
    "=",
    "<<",
    "- a",
    "# no comment",
    "a: b",
    "&a *a !!python/object:os.system",
    "\t",
    "...",
    "word " * 400,
]


@given(st.dictionaries(TEXTS, VALUES, max_size=5), TEXTS)
def test_what_is_written_is_read_again(fields: dict[str, Any], body: str) -> None:
    assert from_markdown(to_markdown(fields, body)) == (fields, body)


@pytest.mark.parametrize("text", NASTY)
def test_any_text_comes_back_wherever_it_stands(text: str) -> None:
    fields = {"text": text, "list": [text, {"deep": [text]}], text: 1, "metadata": dict(NASTY_METADATA)}
    assert from_markdown(to_markdown(fields, text)) == (fields, text)


def test_a_file_reads_well() -> None:
    content = to_markdown({"key": "city", "tags": ["home"], "pinned": True, "valid_to": None}, "Paris")
    assert content.decode() == "---\nkey: city\ntags:\n- home\npinned: true\nvalid_to: null\n---\nParis\n"


def test_what_a_person_wrote_is_taken() -> None:
    written = "\ufeff---\r\nkey: city\r\nvalid_from: 2026-01-31\r\nat: 2026-01-31T09:30:00Z\r\n---\r\nParis\r\nand Rome"
    fields, body = from_markdown(written.encode())
    assert fields == {"key": "city", "valid_from": "2026-01-31", "at": "2026-01-31T09:30:00+00:00"}
    assert body == "Paris\r\nand Rome"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"No front matter.",
        b"---\nkey: city\n",
        b"---\n- a\n- b\n---\n",
        b"---\njust text\n---\n",
        b"---\n---\ntext",
        b"---\nkey: [a\n---\n",
        b"---\nkey: \xff\n---\n",
        b"---\na: &x [1]\nb: *x\n---\n",
        b"---\na: " + b"[" * 100_000 + b"\n---\n",
        b"---\na: " + b"{a: " * 50 + b"1" + b"}" * 50 + b"\n---\n",
        b"---\na: !!python/object/apply:os.system [x]\n---\n",
        b"---\na: !!binary aGVsbG8=\n---\n",
        b"---\na: 2026-99-99\n---\n",
        b"---\na: " + b"9" * 5_000 + b"\n---\n",
        b"---\n? [a, b]\n: 1\n---\n",
    ],
)
def test_what_is_no_front_matter_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(NoFrontMatter) as refused:
        from_markdown(content)
    assert str(refused.value).endswith(".")
