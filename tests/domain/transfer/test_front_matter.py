import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.transfer.front_matter import NoFrontMatter, from_markdown, to_markdown_file
from tests.contracts.store.samples import NASTY_METADATA, NASTY_TEXTS

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
    "1e5",
    "1.0",
    "-0",
    "9" * 31,
    "190:20:30",
    "!long 1",
]


@given(st.dictionaries(TEXTS, VALUES, max_size=5), TEXTS)
def test_what_is_written_is_read_again(fields: dict[str, Any], body: str) -> None:
    assert from_markdown(to_markdown_file(fields, body)) == (fields, body)


@pytest.mark.parametrize("text", NASTY)
def test_any_text_comes_back_wherever_it_stands(text: str) -> None:
    long = [10**29, -(10**40), 10**4_000, 1e16, 5e-324, -0.0]
    fields = {"text": text, "list": [text, {"deep": [text]}], text: 1, "metadata": dict(NASTY_METADATA), "long": long}
    assert from_markdown(to_markdown_file(fields, text)) == (fields, text)


def test_a_file_reads_well() -> None:
    content = to_markdown_file({"key": "city", "tags": ["home"], "pinned": True, "valid_to": None}, "Paris")
    assert content.decode() == "---\nkey: city\ntags:\n- home\npinned: true\nvalid_to: null\n---\nParis\n"


def test_what_a_person_wrote_is_taken() -> None:
    written = "\ufeff---\r\nkey: city\r\nvalid_from: 2026-01-31\r\nat: 2026-01-31T09:30:00Z\r\n---\r\nParis\r\nand Rome"
    fields, body = from_markdown(written.encode())
    assert fields == {"key": "city", "valid_from": "2026-01-31", "at": "2026-01-31T09:30:00Z"}
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
        b"---\na: !long 1:1\n---\n",
        b"---\na: !long " + b"9" * 5_000 + b"\n---\n",
        b"---\na: b\n--- c\n---\n",
        b"---\na: " + b"x " * 1_000_000 + b"\n---\n",
        b"---\n? [a, b]\n: 1\n---\n",
    ],
)
def test_what_is_no_front_matter_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(NoFrontMatter) as refused:
        from_markdown(content)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    "written",
    [
        *("yes", "no", "on", "off", "y", "TRUE", "True", "Null", "~", "", "=", "<<"),
        *("1_000", "0x1f", "0o17", "0b11", "017", "+1", ".5", "1.", "1e", ".inf", ".nan", "1e400", "1:1:1", "12:30"),
        *("2026-01-31", "2026-99-99", "2026-01-31T09:30:00Z", "9" * 31, "0." + "9" * 29),
    ],
)
def test_what_json_does_not_know_is_text(written: str) -> None:
    assert from_markdown(f"---\na: {written}\n---\n".encode()) == ({"a": written}, "")


@pytest.mark.parametrize("written", ["0", "-1", "9" * 30, "1.5", "-0.25", "1e5", "1E+5", "2.5e-3", "true", "null"])
def test_what_json_knows_is_what_json_says(written: str) -> None:
    assert from_markdown(f"---\na: {written}\n---\n".encode()) == ({"a": json.loads(written)}, "")
    assert from_markdown(f"---\n{written}: a\n---\n".encode()) == ({written: "a"}, ""), "a key is text"


@pytest.mark.parametrize(
    "line", ["- 1:1:1:1\n", "a: 1:1\n", "- 2026-01-31T09:30:00.1Z\n", "? x\n", "- '1'\n", "- 1e9\n", "- 1_1\n"]
)
def test_time_grows_with_the_length_alone(line: str) -> None:
    """Eight times as much takes about eight times as long."""

    def seconds(times: int) -> float:
        content = f"---\nkey:\n{line * times}---\n".encode()
        begun = time.process_time()
        with contextlib.suppress(NoFrontMatter):
            from_markdown(content)
        return time.process_time() - begun

    assert seconds(16_000) < 40 * (min(seconds(2_000) for _ in range(3)) + 0.002)


def test_a_number_to_the_base_60_is_read_at_once() -> None:
    for written in ("1:" * 700_000 + "1", "-" + "1:" * 300_000 + "1.5"):
        begun = time.process_time()
        with contextlib.suppress(NoFrontMatter):
            assert from_markdown(f"---\na:\n- {written}\n---\n".encode()) == ({"a": [written]}, "")
        assert time.process_time() - begun < 2
