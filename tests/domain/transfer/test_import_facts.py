"""Imports of many facts: as if each came alone, and again after a part of them."""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.transfer.importing import ImportResult, import_lines
from recollect.memory.transfer.line_source import SourceLine
from recollect.memory.values.fact import Fact
from recollect.memory.values.mem_config import MemoryConfig

Fields = dict[str, Any]
AT = 1_700_000_000


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with open_memory(MemoryConfig(data_dir=tmp_path, sweep_seconds=3_600)) as opened:
        yield opened


def line(user: str, value: str, key: str | None, *, days: int) -> Fields:
    return {"type": "fact", "user_id": user, "key": key, "value": value, "timestamp": AT + days * 86_400}


async def bring(memory: Memory, lines: Iterable[Fields]) -> ImportResult:
    async def source() -> AsyncIterator[SourceLine]:
        for number, said in enumerate(lines, 1):
            yield SourceLine(number, said)

    return await import_lines(memory, source())


async def stored(memory: Memory, user: str) -> list[Fact]:
    return [fact async for batch in memory.parts.store.facts.every(user) for fact in batch]


def shape(facts: Sequence[Fact]) -> list[tuple[object, ...]]:
    """Return what the user sees of facts, whatever their owner; times of writing are left out."""
    value_of = {fact.id: fact.value for fact in facts}
    return sorted(
        (str(fact.key), fact.value, fact.is_open, fact.valid_from, value_of.get(fact.replaces or "", ""))
        for fact in facts
    )


@pytest.mark.parametrize("seed", range(8))
async def test_many_at_once_are_as_if_each_came_alone(memory: Memory, seed: int) -> None:
    chance = random.Random(seed)
    said = [
        (f"value {chance.randrange(5)}", chance.choice(["city", "job", None]), chance.randrange(6)) for _ in range(40)
    ]
    alone = [await bring(memory, [line("ada", value, key, days=days)]) for value, key, days in said]
    together = await bring(memory, [line("bob", value, key, days=days) for value, key, days in said])
    assert together.imported == sum(one.imported for one in alone)
    assert together.known == sum(one.known for one in alone)
    assert shape(await stored(memory, "bob")) == shape(await stored(memory, "ada"))


async def test_a_repeat_completes_what_a_kill_left_and_all_are_indexed(memory: Memory) -> None:
    lines = [line("ada", f"note {number}", None, days=0) for number in range(700)]
    lines += [line("ada", f"town {number}", "city", days=number) for number in range(3)]
    # After the inserts and before the ends: two values of a key hold.
    assert (await bring(memory, lines[:650])).imported == 650
    killed = [fact for fact in await stored(memory, "ada") if fact.value == "note 0"]
    assert len(killed) == 1
    result = await bring(memory, lines)
    assert (result.imported, result.known) == (53, 650)
    assert (await bring(memory, lines)).known == 703
    open_facts = [fact for fact in await stored(memory, "ada") if fact.is_open]
    assert [fact.value for fact in open_facts if fact.key] == ["town 2"]
    await memory.parts.points.sync("ada")
    assert await memory.parts.index.count(user_id="ada") == len(open_facts) == 701
