"""Erases in other embedders' collections and in damaged ones, which lie beside the collection that serves.

Nobody opens or searches them, but they hold users' points, which an erasure must reach. Everything here blocks.
"""

import logging
import shutil
from collections.abc import Generator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import qdrant_edge as edge

from recollect.memory.stores.edge.place import EdgePlace, mark_deleted
from recollect.memory.stores.edge.selection import among, owned_by
from recollect.memory.stores.edge.shard import close_shard, engine_errors, index_payload, is_damage, open_shard
from recollect.memory.stores.private_folder import PrivateFolder
from recollect.memory.values.errors import IndexUnavailable
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

log = logging.getLogger(__name__)

_PAGE = 64
_PIECE = 1 << 20


@frozen
class EdgeOthers:
    """The collections of one folder and base name that do not serve; `open_names` are open in this process."""

    place: EdgePlace
    open_names: AbstractSet[str] = frozenset()

    def erase(self, scope: Scope) -> int:
        """Delete the scope's points and return their number; a whole user's text leaves the files too.

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
                found = _delete(other.path(number), owned_by(scope))
                deleted += found
                if scope.thread_id is None and (found or has_bytes(other.path(number), scope.user_id.encode())):
                    _rewrite(other, number)
            except IndexUnavailable as error:
                if not is_damage(error):
                    raise
                # The engine cannot read a damaged folder, so no part of it can be deleted.
                shutil.rmtree(other.path(number))
                log.warning("a damaged collection is gone with an erasure", extra={"action": "damaged_erased"})
        if scope.thread_id is None:
            for folder in self.place.damaged():
                shutil.rmtree(folder)
                log.warning("what was moved aside as damaged is gone with a user", extra={"action": "damaged_erased"})
        return deleted

    def exist(self) -> bool:
        """Tell whether there are any. It reads one folder of a few entries, which takes less than a thread's hop.

        Raises:
            OSError: the system refuses.
        """
        return any(True for _ in self._others())

    def remove(self, user_id: str, ids: Sequence[str]) -> None:
        """Delete these points of the user; `vacuum` removes their text. Damaged folders are left to an erasure.

        Raises:
            IndexUnavailable: the engine refuses.
            OSError: the system refuses.
        """
        chosen = among(user_id, ids)
        for other in self._others():
            try:
                _delete(other.path(other.serving()), chosen)
            except IndexUnavailable as error:
                if not is_damage(error):
                    raise

    def vacuum(self, seconds: float) -> None:
        """Rewrite collections that hold deleted text and are due; see `VectorIndex.vacuum`.

        Raises:
            IndexUnavailable: the engine refuses.
            OSError: the system refuses.
        """
        for other in self._others():
            number = other.serving()
            if other.is_rewrite_due(number, seconds=seconds):
                _rewrite(other, number)

    def drop(self, name: str) -> None:
        """Delete all files of the collection `name`, unless it is open.

        Raises:
            OSError: the system refuses.
        """
        if name not in {*self.open_names, self.place.name}:
            self.place.other(name).remove_all()

    def remaining(self, scope: Scope) -> int:
        """Return how many points of the scope are stored; a damaged folder with the user's id counts as one."""
        counted = 0
        for other in self._others():
            with _opened(other.path(other.serving())) as shard, engine_errors():
                counted += shard.count(edge.CountRequest(filter=owned_by(scope)))
        if scope.thread_id is None:
            counted += sum(has_bytes(folder, scope.user_id.encode()) for folder in self.place.damaged())
        return counted

    def _others(self) -> list[EdgePlace]:
        others = map(self.place.other, (name for name in self.place.others() if name not in self.open_names))
        return [other for other in others if other.path(other.serving()).is_dir()]


def _delete(path: Path, chosen: edge.Filter) -> int:
    """Delete the points that `chosen` matches in one folder, and return their number."""
    with _opened(path) as shard, engine_errors():
        found = shard.count(edge.CountRequest(filter=chosen))
        if found:
            mark_deleted(path)
            shard.update(edge.UpdateOperation.delete_points_by_filter(chosen))
    return found


def has_bytes(folder: Path, text: bytes) -> bool:
    """Tell whether a file below the folder holds these bytes."""
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
    """Open the shard in a folder with the layout with which it was made, and close it at exit."""
    with engine_errors():
        shard = edge.EdgeShard.load(str(path))
    try:
        yield shard
    finally:
        close_shard(shard)
        PrivateFolder(path).check()


def _rewrite(place: EdgePlace, number: int) -> None:
    """Copy a collection's points into its next generation, then let that one serve."""
    dimension = int(place.name.rpartition("-")[2])
    with _opened(place.path(number)) as shard:
        successor = open_shard(place.path(number + 1), dimension=dimension)
        try:
            with engine_errors():
                index_payload(successor)
                _copy(shard, successor)
                successor.flush()
        finally:
            close_shard(successor)
            PrivateFolder(place.path(number + 1)).check()
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
