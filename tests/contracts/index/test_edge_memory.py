import mmap
import re
import sys
from pathlib import Path

import pytest

from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.edge.mapped_pages import give_back
from tests.contracts.index.points import DIMENSION, MODEL, point

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which pages are mapped")

MEBIBYTE = 1 << 20


def resident(folder: Path) -> int:
    """Return how many bytes of the files below the folder are resident in this process."""
    found, is_below = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_below = line.partition("/")[2].startswith(f"{folder}/"[1:])
        elif is_below and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
    return found


async def test_opening_a_collection_leaves_none_of_the_files_resident_that_it_read_once(tmp_path: Path) -> None:
    stored = [point(seed) for seed in range(20)]
    async with open_edge_index(tmp_path, base="edge", model=MODEL, dimension=DIMENSION) as index:
        await index.upsert(stored)
    async with open_edge_index(tmp_path, base="edge", model=MODEL, dimension=DIMENSION) as index:
        assert resident(tmp_path) < 2 * MEBIBYTE  # the engine had read 30
        assert {entry.id: entry for entry in await index.entries([one.entry.id for one in stored])} == {
            one.entry.id: one.entry for one in stored
        }


def test_what_was_written_to_given_back_pages_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.write_bytes(bytes(MEBIBYTE))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        shared[:] = b"a" * MEBIBYTE
        assert resident(tmp_path) == MEBIBYTE
        give_back(tmp_path)
        assert resident(tmp_path) == 0
        assert shared[:] == path.read_bytes() == b"a" * MEBIBYTE
