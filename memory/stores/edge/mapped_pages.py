"""Gives back the memory that opening a collection took: pages of mapped files that were read once, and freed memory."""

import contextlib
import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_MAPS = Path("/proc/self/maps")


def give_back(folder: Path) -> None:
    """Take the pages of the files below `folder` out of this process's resident memory, and with them freed memory.

    The pages stay in the system's cache, and a later read maps them again. Nothing is lost: only shared mappings are
    given back, and what was written to one belongs to its file. The caller makes sure that no other thread unmaps one
    of these files meanwhile. It does nothing where the system is not Linux, or refuses.
    """
    if sys.platform != "linux":
        return
    system = ctypes.CDLL(None)
    system.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with contextlib.suppress(OSError):
        for start, end in _shared(os.fsencode(folder.resolve())):
            system.madvise(start, end - start, mmap.MADV_DONTNEED)
    if hasattr(system, "malloc_trim"):  # glibc alone has it
        system.malloc_trim(0)


def _shared(folder: bytes) -> Iterator[tuple[int, int]]:
    """Yield where files below `folder` are mapped and shared; lines are `start-end rights offset device inode path`."""
    for line in _MAPS.read_bytes().splitlines():
        place, rights, *_, path = line.split(maxsplit=5)
        if rights.endswith(b"s") and path.startswith(folder + b"/"):
            start, _, end = place.partition(b"-")
            yield int(start, 16), int(end, 16)
