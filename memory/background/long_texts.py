"""Long texts: work that grows with them runs in a thread, so that other requests do not wait for it."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

INLINE_CHARACTERS = 8_000
"""Work on longer texts (in all) would hold up the event loop: much of it takes about 1 µs a character."""

Made = TypeVar("Made")


async def off_loop(work: Callable[[], Made], texts: Iterable[str]) -> Made:
    """Return the result of `work`: run at once where `texts` are short in all, in a thread where they are long."""
    if sum(map(len, texts)) <= INLINE_CHARACTERS:
        return work()
    return await asyncio.to_thread(work)
