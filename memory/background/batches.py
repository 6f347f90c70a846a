"""Cuts long work into pieces of a bounded size."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
