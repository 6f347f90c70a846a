"""Fills a store for the inspector's benchmark: one user with many messages, facts and threads, and many others."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.recalling.passes import say
from benchmarks.recalling.scale import Talker
from recollect.memory.memory import Memory
from recollect.memory.transfer.importing import import_lines
from recollect.memory.transfer.line_source import split_lines

OWNER = "owner"
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_OTHERS_AT_ONCE = 1_000
_IMPORTS_AT_ONCE = 32
"""Imports that run beside each other: an import awaits each write, and writes that wait together share a commit."""


@dataclass(frozen=True, slots=True)
class Size:
    """The user's numbers, and of others the users (a turn and a fact each); `loads` is how often each page is read."""

    messages: int
    facts: int
    threads: int
    others: int
    loads: int


FULL = Size(messages=100_000, facts=5_000, threads=500, others=10_000, loads=100)
QUICK = Size(messages=400, facts=60, threads=8, others=20, loads=5)


async def fill(memory: Memory, size: Size) -> None:
    """Import all lines, the way any import goes: every text is stored and indexed."""
    talker = Talker()
    for start in range(0, size.others, _OTHERS_AT_ONCE):
        names = [f"other-{number}" for number in range(start, min(start + _OTHERS_AT_ONCE, size.others))]
        shares = [names[number::_IMPORTS_AT_ONCE] for number in range(_IMPORTS_AT_ONCE)]
        await asyncio.gather(*(_import(memory, _lines_of_others(talker, some), 3 * len(some)) for some in shares))
        say(f"{start + len(names):,} other users are in")
    await _import(memory, _messages(talker, OWNER, size.messages, size.threads), size.messages)
    say(f"{size.messages:,} messages of the user are in")
    numbers = [range(number, size.facts, _IMPORTS_AT_ONCE) for number in range(_IMPORTS_AT_ONCE)]
    await asyncio.gather(*(_import(memory, _facts(talker, OWNER, some), len(some)) for some in numbers))
    say(f"{size.facts:,} facts of the user are in")


async def _import(memory: Memory, lines: AsyncIterator[bytes], count: int) -> None:
    result = await import_lines(memory, split_lines(lines))
    if result.imported != count:
        raise RuntimeError(f"{result.imported} of {count} lines were imported.")


async def _lines_of_others(talker: Talker, names: list[str]) -> AsyncIterator[bytes]:
    for name in names:
        async for line in _messages(talker, name, 2, 1):
            yield line
        async for line in _facts(talker, name, range(1)):
            yield line


async def _messages(talker: Talker, user_id: str, count: int, threads: int) -> AsyncIterator[bytes]:
    """Yield `count` messages in equal threads, half of them an assistant's."""
    for number in range(count):
        is_user = number % 2 == 0
        yield _line(
            user_id=user_id,
            thread_id=f"thread-{number * threads // count}",
            role="user" if is_user else "assistant",
            content=talker.text(4, 16) if is_user else talker.text(10, 40),
            timestamp=(_FIRST + timedelta(minutes=number)).isoformat(),
            message_id=str(number),
        )


async def _facts(talker: Talker, user_id: str, numbers: range) -> AsyncIterator[bytes]:
    """Yield facts with these numbers, every second one with a key."""
    for number in numbers:
        key = {"key": f"key_{number}"} if number % 2 else {}
        text = f"{talker.text(4, 12)} {number}"
        yield _line(type="fact", user_id=user_id, value=text, tags=[f"tag{number % 20}"], **key)


def _line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"
