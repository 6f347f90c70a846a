"""Measures reads of one user's memory while all users' memories grow, with messages stored through the real stores."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.fake_model import REPLY
from benchmarks.talk import telling
from recollect.memory.background.interpreter import settle_interpreter
from recollect.memory.index.indexing import IndexStep
from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message
from recollect.memory.values.update import Step, Update

OWN_TURNS = 50
TURNS_OF_A_THREAD = 25
THREADS_OF_A_USER = 10
READER = Scope("reader", "t1")
_AT_ONCE = 32
_DONE = Update(steps={"facts": Step(status="done"), "index": Step(status="done")}, planned=True)
_RESULT: dict[str, Any] = {
    "model": "fake-chat",
    "memory": {"window": 10, "facts": {}, "summary": None, "hits": [], "degraded": []},
    "usage": {"input_tokens": 0, "output_tokens": 0},
    "timings_ms": {"recall": 0.0, "agent": 0.0, "total": 0.0},
}


@dataclass(frozen=True, slots=True)
class Reads:
    """Medians in milliseconds, at `messages` of all users together."""

    messages: int
    window: float
    search: float


async def seed(memory: Memory, *, have: int, messages: int) -> None:
    """Grow from `have` messages of all users to `messages`, two a turn; the first are the reader's own."""
    step = IndexStep(memory.parts.index, memory.parts.embedder, memory.parts.store.timeline)
    for start in range(have // 2, messages // 2, _AT_ONCE):
        turns = range(start, min(start + _AT_ONCE, messages // 2))
        stored = await asyncio.gather(*(_store(memory, number) for number in turns))
        await step.add([message for pair in stored for message in pair])


async def _store(memory: Memory, number: int) -> tuple[Message, Message]:
    scope = READER if number < OWN_TURNS else _other(number)
    said = Message(scope.user_id, scope.thread, f"turn-{number}", "user", telling(number), memory.now())
    message = await memory.accept(said)
    turn = await memory.commit(message, reply=REPLY, result=_RESULT, update=_DONE)
    if turn.reply is None:
        raise RuntimeError("A seeded turn was not stored.")
    return message, turn.reply


def _other(number: int) -> Scope:
    thread = number // TURNS_OF_A_THREAD
    return Scope(f"other-{thread // THREADS_OF_A_USER}", f"t{thread % THREADS_OF_A_USER}")


async def reads(memory: Memory, *, messages: int, times: int) -> Reads:
    """Time the reader's window and search, each read `times` times, every time with another text."""
    options = RecallOptions(window=memory.config.window, top_k=memory.config.top_k)

    async def window(number: int) -> Sequence[object]:
        return await memory.recall.window(READER, options)

    async def search(number: int) -> Sequence[object]:
        return (await memory.recall.search(READER, telling(number), options)).hits

    return Reads(messages, await _median_ms(window, times), await _median_ms(search, times))


async def _median_ms(read: Callable[[int], Awaitable[Sequence[object]]], times: int) -> float:
    taken = list[float]()
    for number in range(times + times // 10):
        begun = perf_counter()
        found = await read(number)
        taken.append((perf_counter() - begun) * 1000)
        if not found:
            raise RuntimeError("A read found nothing, so its time says nothing.")
    return median(taken[times // 10 :])  # the first ones warm up


async def grow(folder: Path, *, sizes: Sequence[int], times: int, at_size: Callable[[int], None]) -> list[Reads]:
    """Seed, and read at each size as the service reads.

    `at_size` is called with the stores closed, so that a service can start there.
    """
    found, have = list[Reads](), 0
    settle_interpreter()
    for messages in sizes:
        async with open_memory(MemoryConfig(data_dir=folder)) as memory:
            await seed(memory, have=have, messages=messages)
            found.append(await reads(memory, messages=messages, times=times))
        have = messages
        at_size(messages)
    return found
