"""Messages of an import in the order of their times, whatever the order of their lines."""

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.transfer.import_order import ImportOrder
from recollect.memory.transfer.importing import SenderGone, import_lines
from recollect.memory.transfer.line_source import SourceLine
from recollect.memory.values.errors import ImportUnfinished
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from tests.domain.transfer.test_importing import bring, said, source, talk, texts

START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
Fields = dict[str, Any]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with open_memory(MemoryConfig(data_dir=tmp_path / "data", sweep_seconds=3_600)) as opened:
        yield opened


def at(minute: int, role: str, content: str, **more: Any) -> Fields:
    return {**said(role, content, **more), "timestamp": (START + timedelta(minutes=minute)).isoformat()}


TALK = [
    at(0, "user", "A", message_id="a"),
    at(1, "assistant", "B", message_id="b"),
    at(2, "user", "C", message_id="c"),
    at(3, "assistant", "D", message_id="d"),
    at(4, "user", "E", message_id="e"),
]


async def pairs(memory: Memory, thread: str = "t1") -> list[list[str]]:
    exchanges = await memory.parts.store.conversations.recent(Scope("ada", thread), limit=50)
    return [[message.content for message in exchange.messages] for exchange in exchanges]


@pytest.mark.parametrize("lines", [TALK, TALK[::-1], [TALK[place] for place in (3, 0, 4, 2, 1)]])
async def test_a_thread_comes_in_the_order_of_its_times(memory: Memory, lines: list[Fields]) -> None:
    result = await bring(memory, *lines)
    assert (result.imported, result.failed) == (5, ())
    assert await pairs(memory) == [["A", "B"], ["C", "D"], ["E"]]
    assert result.out_of_order == {0: 0, 4: 4, 3: 3}[[*TALK].index(lines[0])]
    again = await bring(memory, *lines)
    assert (again.known, again.out_of_order) == (5, result.out_of_order)


async def test_the_answer_says_how_many_lines_were_out_of_order(memory: Memory) -> None:
    assert (await bring(memory, *TALK[::-1])).as_json() == {"imported": 5, "known": 0, "failed": [], "out_of_order": 4}
    assert "out_of_order" not in (await bring(memory, *TALK)).as_json()


async def test_lines_of_one_time_keep_their_order(memory: Memory) -> None:
    assert (await bring(memory, *talk(30))).out_of_order == 0
    assert [content for _, content in await texts(memory)] == [line["content"] for line in talk(30)]


async def test_threads_of_several_users_are_sorted_each_by_itself(memory: Memory) -> None:
    other = [at(minute, role, f"{role} {minute}", thread="t2") for minute in (7, 3, 5) for role in ("user",)]
    result = await bring(memory, *[line for both in zip(TALK, other, strict=False) for line in both], *TALK[3:])
    assert result.out_of_order == 2
    assert await pairs(memory) == [["A", "B"], ["C", "D"], ["E"]]
    assert await pairs(memory, "t2") == [["user 3"], ["user 5"], ["user 7"]]


async def test_turns_are_stored_in_the_order_in_which_they_began(memory: Memory) -> None:
    """Check that facts are learned in that order too, over all threads."""
    lines = [
        at(9, "assistant", "late answer", thread="t1"),
        at(6, "user", "third", thread="t3"),
        at(0, "user", "first", thread="t1"),
        at(3, "user", "second", thread="t2"),
        at(4, "assistant", "answer", thread="t2"),
    ]
    await bring(memory, *lines, learn=True)
    pending = await memory.parts.store.updates.pending("ada", limit=10)
    stored = [turn async for turns in memory.parts.store.conversations.turns("ada") for turn in turns]
    assert [turn.message.content for turn in pending or stored] == ["first", "second", "third"]


async def test_a_line_that_cannot_be_read_parts_what_it_stands_between(memory: Memory) -> None:
    await bring(memory, TALK[3], {**TALK[3], "message_id": 7}, TALK[2])
    assert await pairs(memory) == [["C", "D"]], "its place is behind D"
    await bring(memory, *[{**line, "thread_id": "t2", "message_id": None} for line in (TALK[0], {}, TALK[1])])
    assert await pairs(memory, "t2") == [["A", "B"]], "what says neither thread nor time stands nowhere"
    lines = [{**line, "thread_id": "t3", "message_id": None} for line in (TALK[0], {**TALK[0], "x": 1}, TALK[1])]
    await bring(memory, *lines)
    assert await pairs(memory, "t3") == [["A"], ["B"]]


async def test_what_came_before_a_source_failed_is_stored(memory: Memory) -> None:
    async def failing(error: Exception) -> AsyncIterator[SourceLine]:
        async for line in source(TALK[:2]):
            yield line
        raise error

    with pytest.raises(SenderGone):
        await import_lines(memory, failing(SenderGone()))
    assert await pairs(memory) == [], "nobody waits for it"
    with pytest.raises(ValueError, match="broken"):
        await import_lines(memory, failing(ValueError("broken")))
    assert await pairs(memory) == [["A", "B"]]


async def test_what_came_before_the_time_was_up_is_stored(memory: Memory) -> None:
    async def endless() -> AsyncIterator[SourceLine]:
        number = 0
        while True:
            number += 1
            yield SourceLine(number, at(-number, "user", f"{number}"))

    with pytest.raises(ImportUnfinished):
        await import_lines(memory, endless(), seconds=0.1)
    assert await texts(memory)


async def test_what_names_its_pair_belongs_together_whichever_comes_first(memory: Memory) -> None:
    """Both were stored in one moment, newest first; another pair stands between."""
    lines = [
        at(1, "assistant", "B", pair_id="p"),
        at(2, "assistant", "D", pair_id="q"),
        at(1, "user", "A", pair_id="p"),
        at(2, "user", "C", pair_id="q"),
    ]
    await bring(memory, *lines)
    assert await pairs(memory) == [["A", "B"], ["C", "D"]]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), st.integers(0, 5)), max_size=30))
def test_every_line_comes_once_and_each_thread_in_order(lines: list[tuple[str, bool, int]]) -> None:
    order = ImportOrder()
    for number, (thread, asks, minute) in enumerate(lines):
        order.message(number, b"%d" % number, place=("u", thread), asks=asks, at=START + timedelta(minutes=minute))
    turns = list(order.turns())
    numbers = [number for turn in turns for number, text in turn if int(text) == number]
    assert sorted(numbers) == list(range(len(lines)))
    for name in "ab":
        found = [number for number in numbers if lines[number][0] == name]
        assert found == sorted(found, key=lambda number: (lines[number][2], number))
    firsts = [turn[0][0] for turn in turns]
    assert firsts == sorted(firsts, key=lambda number: (lines[number][2], number))
    for turn in turns:
        assert [lines[number][1] for number, _ in turn] in ([True], [False], [True, False])
        assert len({lines[number][0] for number, _ in turn}) == 1
