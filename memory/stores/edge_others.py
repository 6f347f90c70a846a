"""What lies beside the collection that serves: other embedders' collections, and what was moved aside as damaged.

None of it is open or searched, but it holds users' points, and an erasure must reach it. Everything here blocks.
"""

import logging
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import qdrant_edge as edge

from memory.errors import IndexUnavailable
from memory.scope import Scope
from memory.stores.edge_collection import owned_by
from memory.stores.edge_place import Place
from memory.stores.edge_shard import close_shard, engine_errors, is_damage, open_shard

log = logging.getLogger(__name__)

_PAGE = 64
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class EdgeOthers:
    """The other collections of one folder and base name."""

    place: Place

    def erase(self, scope: Scope) -> int:
        """Delete the scope's points; a whole user's text leaves the files too. How many points there were.

        Raises:
            IndexUnavailable: the engine refuses, or another process has one of them open.
            OSError: the system refuses.
        """
        deleted = 0
        for other in self._others():
            number = other.serving()
            other.remove_before(number)
            other.remove_after(number)
            try:
                found = _delete(other.path(number), scope)
                deleted += found
                if scope.thread_id is None and (found or has_bytes(other.path(number), scope.user_id.encode())):
                    _rewrite(other, number)
            except IndexUnavailable as error:
                if not is_damage(error):
                    raise
                # Nobody can read it, or take a part out of it.
                shutil.rmtree(other.path(number))
                log.warning("a damaged collection is gone with an erasure", extra={"action": "damaged_erased"})
        if scope.thread_id is None:
            for folder in self.place.damaged():
                shutil.rmtree(folder)
                log.warning("what was moved aside as damaged is gone with a user", extra={"action": "damaged_erased"})
        return deleted

    def remaining(self, scope: Scope) -> int:
        """How many points of the scope there are; a damaged folder that holds the user's id counts as one."""
        counted = 0
        for other in self._others():
            with _opened(other.path(other.serving())) as shard, engine_errors():
                counted += shard.count(edge.CountRequest(filter=owned_by(scope)))
        if scope.thread_id is None:
            counted += sum(has_bytes(folder, scope.user_id.encode()) for folder in self.place.damaged())
        return counted

    def _others(self) -> list[Place]:
        others = map(self.place.other, self.place.others())
        return [other for other in others if other.path(other.serving()).is_dir()]


def _delete(path: Path, scope: Scope) -> int:
    """Delete the scope's points in one folder; how many there were."""
    chosen = owned_by(scope)
    with _opened(path) as shard, engine_errors():
        found = shard.count(edge.CountRequest(filter=chosen))
        if found:
            shard.update(edge.UpdateOperation.delete_points_by_filter(chosen))
    return found


def has_bytes(folder: Path, text: bytes) -> bool:
    """Whether a file below the folder holds these bytes."""
    return any(_holds(path, text) for path in folder.rglob("*") if path.is_file())


def _holds(path: Path, text: bytes) -> bool:
    before = b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if text in before + piece:
                return True
            before = piece[-len(text) :]
    return False


@contextmanager
def _opened(path: Path) -> Generator[edge.EdgeShard]:
    """The shard in a folder, laid out as it was made."""
    with engine_errors():
        shard = edge.EdgeShard.load(str(path))
    try:
        yield shard
    finally:
        close_shard(shard)


def _rewrite(place: Place, number: int) -> None:
    """Copy a collection's points into its next generation, which then takes its place."""
    dimension = int(place.name.rpartition("-")[2])
    with _opened(place.path(number)) as shard:
        successor = open_shard(place.path(number + 1), dimension=dimension)
        try:
            with engine_errors():
                _copy(shard, successor)
                successor.flush()
        finally:
            close_shard(successor)
    place.serve(number + 1)
    place.remove_before(number + 1)


def _copy(shard: edge.EdgeShard, successor: edge.EdgeShard) -> None:
    after: edge.PointId | None = None
    while True:
        request = edge.ScrollRequest(offset=after, limit=_PAGE, with_payload=True, with_vector=True)
        records, after = shard.scroll(request)
        points = [edge.Point(record.id, _vectors(record), record.payload) for record in records]
        if points:
            successor.update(edge.UpdateOperation.upsert_points(points))
        if after is None:
            return


def _vectors(record: edge.Record) -> "dict[str, edge.NamedVector]":
    return cast("dict[str, edge.NamedVector]", record.vector or {})
