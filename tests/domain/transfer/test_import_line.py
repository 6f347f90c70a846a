"""One line, read and checked; a stream, split into lines."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.transfer.import_line import MOST_LINE_BYTES, BadLine, ImportMessage, parse_object, read_message
from recollect.memory.transfer.line_source import TOO_LONG, SourceLine, split_lines

GOOD: dict[str, Any] = {
    "user_id": "ada",
    "thread_id": "t1",
    "role": "user",
    "content": "I moved to Paris.",
    "timestamp": "2026-01-31T09:30:00Z",
}
AT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def read_line(raw: bytes) -> ImportMessage:
    return read_message(parse_object(raw))


def line(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def refusal(raw: bytes) -> str:
    with pytest.raises(BadLine) as caught:
        read_line(raw)
    return caught.value.error


def test_a_line_says_all_that_it_may() -> None:
    more: dict[str, Any] = {"name": "Ada", "message_id": "m 1/ü", "metadata": {"a.b": [1, {"$c": None}]}}
    assert read_line(line(**more)) == ImportMessage("ada", "t1", "user", GOOD["content"], AT, **more)


def test_what_is_null_or_left_out_is_not_there() -> None:
    assert read_line(line(name=None, message_id=None, metadata=None)) == read_line(line())


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-01-31T09:30:00+00:00", AT),
        ("2026-01-31T10:30:00+01:00", AT),
        ("2026-01-31 09:30:00", AT),
        ("2026-01-31T09:30:00.123456Z", AT.replace(microsecond=123_000)),
        ("2026-01-31", AT.replace(hour=0, minute=0)),
        (AT.timestamp(), AT),
        (int(AT.timestamp() * 1_000) + 5, AT.replace(microsecond=5_000)),
        (AT.timestamp() + 0.25, AT.replace(microsecond=250_000)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_read(written: object, expected: datetime) -> None:
    assert read_line(line(timestamp=written)).created_at == expected


@pytest.mark.parametrize(
    "written", ["yesterday", "", None, True, [], {}, 1e300, -1e300, 10**30, "0001-01-01", "9999-12-31"]
)
def test_what_is_no_time_is_refused(written: object) -> None:
    assert refusal(line(timestamp=written)).startswith("timestamp must be a time")


@pytest.mark.parametrize("field", list(GOOD))
def test_what_is_missing_is_named(field: str) -> None:
    rest = {name: value for name, value in GOOD.items() if name != field}
    assert refusal(json.dumps(rest).encode()) == f"{field} is missing."


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"colour": 1}, '"colour" is not a known field.'),
        ({"\ud800" + "x" * 100: 1}, f'"?{"x" * 39}…" is not a known field.'),
        ({"user_id": 7}, "user_id must be a text."),
        ({"thread_id": "a b"}, "thread_id must be 1-128 characters of [A-Za-z0-9._:@+|~=-] and not '.' or '..'."),
        ({"user_id": ".."}, "user_id must be 1-128 characters of [A-Za-z0-9._:@+|~=-] and not '.' or '..'."),
        ({"user_id": "*"}, "user_id must be 1-128 characters of [A-Za-z0-9._:@+|~=-] and not '.' or '..'."),
        ({"role": "system"}, 'role must be "user" or "assistant".'),
        ({"role": ["user"]}, 'role must be "user" or "assistant".'),
        ({"content": ""}, "content must have 1 to 200,000 characters."),
        ({"content": "x" * 200_001}, "content must have 1 to 200,000 characters."),
        ({"content": None}, "content must be a text."),
        ({"content": "a\x00"}, "content must not contain NUL."),
        ({"content": "\ud800"}, "content must not contain lone surrogates."),
        ({"name": ""}, "name must have 1 to 128 characters."),
        ({"name": 1}, "name must be a text."),
        ({"message_id": ""}, "message_id must have 1 to 128 characters."),
        ({"message_id": "x" * 129}, "message_id must have 1 to 128 characters."),
        ({"message_id": "a\x00"}, "message_id must not contain NUL."),
        ({"metadata": []}, "metadata must be an object."),
        ({"metadata": {"a": "\x00"}}, "metadata must not contain NUL."),
        ({"metadata": {"\ud800": 1}}, "metadata must not contain lone surrogates."),
    ],
)
def test_what_cannot_be_stored_is_refused_in_a_sentence(changes: dict[str, Any], error: str) -> None:
    assert refusal(line(**changes)) == error


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"{", "The line is not valid JSON."),
        (b"[1]", "The line is not a JSON object."),
        (b"null", "The line is not a JSON object."),
        (b'{"a": NaN}', "The line is not valid JSON."),
        (b"\xff\xfe{}", "The line is not UTF-8."),
        (b"[" * 200_000, "The line is nested too deeply."),
        (b'{"a": ' + b"9" * 5_000 + b"}", "The line is not valid JSON."),
    ],
)
def test_what_is_no_json_object_is_refused(raw: bytes, error: str) -> None:
    assert refusal(raw) == error


def test_metadata_is_of_bounded_depth() -> None:
    deep: object = 1
    for _ in range(19):
        deep = [deep]
    assert read_line(line(metadata={"a": deep})).metadata == {"a": deep}
    assert "nested deeper" in refusal(line(metadata={"a": [[deep]]}))
    assert "nested deeper" in refusal(line()[:-1] + b', "metadata": {"a": ' + b"[" * 500 + b"]" * 500 + b"}}")


def test_a_bad_line_tells_whose_it_would_have_been() -> None:
    with pytest.raises(BadLine) as caught:
        read_line(line(content=""))
    assert caught.value.thread == ("ada", "t1")


def test_ids_are_the_same_at_every_import_and_differ_where_messages_do() -> None:
    named, other = read_line(line(message_id="m1")), read_line(line(message_id="m1", content="Else.", thread_id="t2"))
    assert named.imported_id == "m1"
    assert named.turn_id == other.turn_id
    plain = [read_line(line(**changes)) for changes in ({}, {"content": "Else."}, {"role": "assistant"}, {"name": "A"})]
    assert len({message.imported_id for message in plain}) == len({message.turn_id for message in plain}) == 4
    assert read_line(line()).imported_id == plain[0].imported_id


async def pieces(whole: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(whole), size):
        yield whole[start : start + size]


async def split(whole: bytes, size: int = 7) -> list[SourceLine]:
    return [found async for found in split_lines(pieces(whole, size))]


@given(st.lists(st.sampled_from([b"", b"a", b" \r", b"bc\r", b"d" * 20])), st.integers(1, 30), st.booleans())
async def test_lines_keep_their_numbers_however_the_bytes_come(lines: list[bytes], size: int, ends: bool) -> None:
    whole = b"\n".join(lines) + (b"\n" if ends else b"")
    expected = [SourceLine(number, text) for number, text in enumerate(lines, 1) if text.strip()]
    assert await split(whole, size) == expected


async def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert await split(b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}") == [(1, b"{}"), (2, b"\xef\xbb\xbf{}")]


async def test_of_a_line_that_is_too_long_nothing_is_kept() -> None:
    whole = b"a\n" + b"x" * (8 * MOST_LINE_BYTES) + b"\nb\n" + b"y" * MOST_LINE_BYTES + b"\n" + b"z" * 5_000_000
    assert await split(whole, 65_536) == [
        (1, b"a"),
        (2, TOO_LONG),
        (3, b"b"),
        (4, b"y" * MOST_LINE_BYTES),
        (5, TOO_LONG),
    ]


async def test_an_object_may_hold_the_longest_reply_escaped() -> None:
    line = b'{"content": "' + b"\\ud83d\\ude00" * 1_000_000 + b'"}'
    assert await split(b"\xef\xbb\xbf" + line + b"\n{" + b"y" * 16_000_000, 65_536) == [(1, line), (2, TOO_LONG)]


async def test_a_million_blank_lines_are_nothing() -> None:
    assert await split(b"\n" * 1_000_000 + b"a", 65_536) == [(1_000_001, b"a")]
