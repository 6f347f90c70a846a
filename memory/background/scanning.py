"""Looks through a list for the items that fit, up to a bound."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from recollect.memory.values.frozen import frozen

Item = TypeVar("Item")

MOST_CHECKED = 10_000
"""How many items of a list are looked at for one page."""
PAGE = 500
"""How many are read at a time."""


@frozen
class Fitting(Generic[Item]):
    """A page of the items that fit, and whether more follow. `is_complete`: no item before its end was left out."""

    items: Sequence[Item]
    has_more: bool
    is_complete: bool


async def pages(read: Callable[[Item | None], Awaitable[Sequence[Item]]]) -> AsyncIterator[Sequence[Item]]:
    """Yield pages until one is empty; `read` returns the page behind the item that it is given (None: the first)."""
    last: Item | None = None
    while page := await read(last):
        yield page
        last = page[-1]


async def first_fitting(
    found: AsyncIterator[Sequence[Item]], fits: Callable[[Item], bool], *, limit: int, most: int = MOST_CHECKED
) -> Fitting[Item]:
    """Return the first `limit` items that fit, of the first `most`."""
    kept, seen = list[Item](), 0
    async for page in found:
        for item in page:
            if seen == most:
                return Fitting(kept, has_more=False, is_complete=False)
            seen += 1
            if fits(item):
                if len(kept) == limit:
                    return Fitting(kept, has_more=True, is_complete=True)
                kept.append(item)
    return Fitting(kept, has_more=False, is_complete=True)


async def newest_fitting(
    found: AsyncIterator[Sequence[Item]],
    fits: Callable[[Item], bool],
    is_after: Callable[[Item], bool] | None,
    *,
    limit: int,
    most: int = MOST_CHECKED,
) -> Fitting[Item]:
    """Return the first `limit` items that fit, of the last `most` of a list whose newest items come last.

    With `is_after`, only those behind the first item for which it is true; none where there is no such item.
    """
    kept, seen, begun = list[tuple[int, Item]](), 0, is_after is None
    async for page in found:
        for item in page:
            seen += 1
            if begun and fits(item):
                kept.append((seen, item))
            begun = begun or (is_after is not None and is_after(item))
    oldest = seen - most
    left = [item for number, item in kept if number > oldest]
    return Fitting(left[:limit], has_more=len(left) > limit, is_complete=oldest <= 0)
