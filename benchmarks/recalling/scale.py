"""Measures the time of a search, embedding included, for a user with many messages, while others' memories grow.

The texts are generated from words whose frequencies follow Zipf's law, as a language's do. The user's own messages are
embedded by the model; other users' have random vectors under the model's name, which cost the index the same.
"""

import asyncio
import gc
import json
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from statistics import median, quantiles
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.recalling.passes import say, search
from benchmarks.report import Row
from recollect.memory.background.interpreter import settle_interpreter
from recollect.memory.memory import Memory
from recollect.memory.ports.embedder import Embedder
from recollect.memory.transfer.importing import import_lines
from recollect.memory.transfer.line_source import split_lines

OWNER = "owner"
MOST_P50_MS = 12.0
MOST_LEXICAL_P50_MS = 8.0
"""The most where no model embeds the query."""
MOST_HOLD_MS = 5.0
FLAT = 1.2
TOP_K = 10
TICK_SECONDS = 0.001
IDLE_SECONDS = 4.0
"""How long the loop is watched with nothing to do: what it is late then is the machine's."""
_WORDS = 4_000
_THREAD_MESSAGES = 50
_USER_MESSAGES = 2_000
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers of messages of the user and of all others (rising), and of timed searches at each size."""

    own: int
    others: tuple[int, ...]
    times: int


FULL = Scale(own=20_000, others=(20_000, 200_000), times=300)
QUICK = Scale(own=200, others=(200, 600), times=20)


class RandomVectors:
    """An embedder whose documents have random vectors of length 1, equal for equal texts."""

    def __init__(self, embedder: Embedder, dimension: int) -> None:
        self._embedder = embedder
        self._dimension = dimension

    @property
    def model(self) -> str:
        """Return the embedder's name, so that all points are in one collection."""
        return self._embedder.model

    @property
    def knows_meaning(self) -> bool:
        """Return the embedder's value, so that points have the same channels."""
        return self._embedder.knows_meaning

    async def dimension(self) -> int:
        """Return the embedder's dimension."""
        return self._dimension

    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the embedder's vector."""
        return await self._embedder.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return random directions."""
        drawn = np.stack([np.random.default_rng(crc32(text.encode())).normal(size=self._dimension) for text in texts])
        return list((drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).tolist())

    async def ping(self) -> None:
        """Do nothing: there is no server to ask."""


class Talker:
    """Generates texts, equal in every run."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        syllables = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "i", "o", "u", "an", "er")]
        self._vocabulary = ["".join(self._random.choices(syllables, k=2 + number % 2)) for number in range(_WORDS)]
        self._weights = list(accumulate(1 / (place + 3) for place in range(_WORDS)))

    def text(self, least: int, most: int) -> str:
        """Return a text of `least` to `most` words."""
        count = self._random.randint(least, most)
        return " ".join(self._random.choices(self._vocabulary, cum_weights=self._weights, k=count))

    async def lines(self, user_id: str, count: int) -> AsyncIterator[bytes]:
        """Yield `count` messages of a user, half of them an assistant's, as lines of an import."""
        for number in range(count):
            is_user = number % 2 == 0
            line = {
                "user_id": user_id,
                "thread_id": f"t{number // _THREAD_MESSAGES}",
                "role": "user" if is_user else "assistant",
                "content": self.text(4, 16) if is_user else self.text(10, 40),
                "timestamp": (_FIRST + timedelta(minutes=number)).isoformat(),
                "message_id": str(number),
            }
            yield json.dumps(line).encode() + b"\n"


async def scale(memory: Memory, sizes: Scale) -> tuple[list[Row], dict[str, Any]]:
    """Grow the memory and measure; return rows against the targets, and the figures."""
    talker, have, found = Talker(), 0, list[dict[str, Any]]()
    await _import(memory, talker, OWNER, sizes.own)
    say(f"{sizes.own:,} messages of the user are in")
    random = RandomVectors(memory.parts.embedder, await memory.parts.embedder.dimension())
    fast = replace(memory, parts=replace(memory.parts, embedder=random))
    for others in sizes.others:
        for start in range(have, others, _USER_MESSAGES):
            await _import(fast, talker, f"other-{start}", min(_USER_MESSAGES, others - start))
        have = others
        say(f"{others:,} messages of others are in")
        found.append({"own": sizes.own, "others": others, **await _timed(memory, talker, sizes.times)})
    return _rows(found, memory.parts.embedder), {"embedder": memory.parts.embedder.model, "searches": found}


async def _import(memory: Memory, talker: Talker, user_id: str, count: int) -> None:
    result = await import_lines(memory, split_lines(talker.lines(user_id, count)))
    if result.imported != count or await memory.parts.index.count(user_id=user_id) != count:
        raise RuntimeError(f"Not all of {count} messages are stored and indexed.")


async def _timed(memory: Memory, talker: Talker, times: int) -> dict[str, float]:
    """Time searches with different texts, so that none finds its vector in the cache, and the loop's longest hold.

    The interpreter is set as the service sets it. As many searches come before: where the system has not read the files
    that a search needs, that is what is measured (27 ms at first, then less for 200 searches).
    The hold is measured in searches of its own, because the ticks that measure it take time from those that are timed,
    and before that with nothing to do.
    """
    gc.collect()  # what was imported is not the searches' own
    settle_interpreter()
    for _ in range(times):  # the files' pages are read once
        await _taken(memory, talker)
    timed = [await _taken(memory, talker) for _ in range(times)]
    async with _measured_hold() as idle:
        await asyncio.sleep(IDLE_SECONDS)
    async with _measured_hold() as hold:
        for _ in range(times):
            await _taken(memory, talker)
    return {
        "p50": round(median(timed), 2),
        "p95": round(quantiles(timed, n=20)[-1], 2),
        "longest hold": round(hold.longest_ms, 2),
        "idle hold": round(idle.longest_ms, 2),
    }


async def _taken(memory: Memory, talker: Talker) -> float:
    """Search once; return how many milliseconds it took."""
    query = talker.text(6, 10)
    begun = time.perf_counter()
    hits = await search(memory, OWNER, query, TOP_K, now=_FIRST + timedelta(days=60))
    taken = (time.perf_counter() - begun) * 1_000
    if not hits:
        raise RuntimeError("A search found nothing, so its time says nothing.")
    return taken


@dataclass(slots=True)
class _Hold:
    """The longest delay so far of a task that wants to tick: the loop's longest step, and what the machine added."""

    longest_ms: float = 0.0


@asynccontextmanager
async def _measured_hold() -> AsyncGenerator[_Hold]:
    """Measure while the block runs."""
    hold = _Hold()
    task = asyncio.create_task(_tick(hold), name="loop-hold")
    try:
        yield hold
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _tick(hold: _Hold) -> None:
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        late = time.perf_counter() - begun - TICK_SECONDS
        hold.longest_ms = max(hold.longest_ms, late * 1_000)


def _rows(found: Sequence[dict[str, Any]], embedder: Embedder) -> list[Row]:
    first, last = found[0], found[-1]
    most = MOST_P50_MS if embedder.knows_meaning else MOST_LEXICAL_P50_MS
    what = f"search p50 / p95, {embedder.model}, a user with {first['own']:,} messages, {first['others']:,} of others"
    medians = " → ".join(f"{at['p50']:.1f}" for at in found)
    change = f"{medians} ms ({(last['p50'] / first['p50'] - 1) * 100:+.0f} %)"
    holding, hold = "longest hold of the event loop in these searches", max(at["longest hold"] for at in found)
    idle = max(at["idle hold"] for at in found)
    growing = f"search p50 while messages of others grow to {last['others']:,} (their vectors are random)"
    return [
        Row(what, f"< {most:.0f} ms", f"{first['p50']:.1f} / {first['p95']:.1f} ms", first["p50"] < most),
        Row(growing, "flat within 20 %", change, last["p50"] <= first["p50"] * FLAT),
        Row(holding, f"< {MOST_HOLD_MS:.0f} ms", f"{hold:.1f} ms ({idle:.1f} with nothing to do)", hold < MOST_HOLD_MS),
    ]
