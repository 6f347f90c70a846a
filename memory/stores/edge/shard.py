"""Lays out, opens and repairs one Qdrant Edge shard in one folder, and translates its errors.

The engine is synchronous: everything here runs in the index's own threads, never on the event loop.
"""

import logging
import re
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    IntegerIndexParams,
    KeywordIndexParams,
    Memory,
    Modifier,
    ScrollRequest,
    TurboQuantBitSize,
    TurboQuantQuantizationConfig,
    UpdateOperation,
)

from recollect.memory.stores.edge.mapped_pages import give_back
from recollect.memory.stores.points import BM25, CONTEXT, CREATED, DENSE, DOCUMENT, TERMS, THREAD, TURN, USER
from recollect.memory.stores.private_folder import PrivateFolder, make_folder
from recollect.memory.values.errors import IndexUnavailable

log = logging.getLogger(__name__)

# In KB: so high that no graph is ever built. Brute force over one user's 20,000 points takes 1 to 2 ms.
_NEVER_INDEX = 1_000_000_000

# A shard has one segment, which one thread reads. More would be woken by each search, look for work and find none.
_SEARCH_THREADS = 1

OWNER = "owner"
"""The payload field that says user and kind in one. A second condition is looked at for every point that the first one
leaves: at 20,000 points it takes a third of a search, and half where points of many users lie mixed."""

_PROBED = 100

# No damage, though the folder cannot be opened: another process holds it, or the machine refuses (permission, memory,
# open files, space, a read-only or full file system; errno as Rust prints it).
_NOT_DAMAGE = re.compile(r"WouldBlock|\(os error (1|12|13|23|24|28|30|122)\)")

_LOG_FILES, _LOG_SECONDS = 2, 0.1
"""The files of a new shard's log, and how long their making is waited for."""


@contextmanager
def engine_errors() -> Generator[None]:
    """Raise the engine's errors (bare `Exception`s and panics) as IndexUnavailable; other types are our own bugs.

    The engine's text names files, never contents; it stays in `__cause__`.
    """
    try:
        yield
    except BaseException as error:
        if not _from_engine(error):
            raise
        raise IndexUnavailable from error


def open_shard(path: Path, *, dimension: int) -> EdgeShard:
    """Open the shard in `path`, or create it. An empty one may lack its payload's indexes; see `index_payload`.

    A damaged one is moved aside as `<name>.damaged-<time>` and an empty one takes its place: the index is derived, and
    IndexRepair fills it again from the store at start-up.

    Raises:
        IndexUnavailable: another process has it open, or the system refuses the files.
    """
    try:
        make_folder(path)
        shard = _load(path, dimension=dimension) if any(path.iterdir()) else None
        if shard is None:
            make_folder(path)  # again, where a damaged one was moved aside
            with engine_errors():
                shard = EdgeShard.create(str(path), _layout(dimension))
            _await_log(path)
    except OSError as error:
        raise IndexUnavailable from error
    with engine_errors():
        if shard.count(CountRequest()):
            index_payload(shard)
    PrivateFolder(path).check()
    give_back(path)  # nobody else has the shard yet, so no other thread unmaps its files
    return shard


def _await_log(path: Path) -> None:
    """Wait, for a moment at most, until the engine's own thread has made the next file of a new shard's log.

    Made after the folder was checked, it would stay readable for others until the next write. The folder is private.
    """
    deadline = time.monotonic() + _LOG_SECONDS
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if len(list((path / "wal").iterdir())) >= _LOG_FILES:
                return
        time.sleep(0.001)


def close_shard(shard: EdgeShard) -> None:
    """Flush the shard and release the folder.

    A failed write is only logged: the store has the data, and the next start repairs the index.
    """
    for step in (shard.flush, shard.close):  # closing frees the folder's lock even where flushing failed
        try:
            with engine_errors():
                step()
        except IndexUnavailable as error:
            reason = type(error.__cause__).__name__
            log.warning("the vector index was not closed well", extra={"action": "index_not_closed", "reason": reason})


def _load(path: Path, *, dimension: int) -> EdgeShard | None:
    """Return the shard if it can be read and written; else move it aside and return None."""
    try:
        with engine_errors():
            shard = EdgeShard.load(str(path), _layout(dimension))
            _probe(shard)
            return shard
    except IndexUnavailable as error:
        if not is_damage(error):
            raise
        reason = type(error.__cause__).__name__
    aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z")
    path.rename(aside)
    log.warning(
        "the vector index was damaged; it was moved aside and starts empty",
        extra={"action": "index_damaged", "collection": path.name, "moved_to": aside.name, "reason": reason},
    )
    return None


def is_damage(error: IndexUnavailable) -> bool:
    """Tell whether the engine could not open a folder because of its content."""
    return error.__cause__ is not None and not _NOT_DAMAGE.search(str(error.__cause__))


def _probe(shard: EdgeShard) -> None:
    """Read some points and write once: some damage shows only then. Reading all would take seconds."""
    shard.count(CountRequest())
    shard.scroll(ScrollRequest(limit=_PROBED, with_payload=True, with_vector=True))
    shard.flush()


def _layout(dimension: int) -> EdgeConfig:
    """Return the shard's layout: vectors stay in mapped files, read as needed (`Cold`), and cost no resident memory.

    A search by meaning reads short codes of a user's vectors, four bits a number, and compares the best of them whole
    (`collection.py`). A shard that was made before there were codes has none, and is read whole until it is rewritten.
    """
    codes = TurboQuantQuantizationConfig(bits=TurboQuantBitSize.Bits4, memory=Memory.Cold)
    vectors = {
        name: EdgeVectorParams(
            size=dimension,
            distance=Distance.Cosine,
            memory=Memory.Cold,
            quantization_config=codes if name == DENSE else None,  # contexts are only compared by id
        )
        for name in (DENSE, CONTEXT)
    }
    return EdgeConfig(
        vectors=vectors,
        sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        optimizers=EdgeOptimizersConfig(indexing_threshold=_NEVER_INDEX),
        payload_memory=Memory.Cold,
        max_search_threads=_SEARCH_THREADS,
        wal_enabled=True,
    )


def index_payload(shard: EdgeShard) -> None:
    """Index the fields that filters use, before the first point is stored; the next opening goes on after a kill.

    An empty shard does without: a service's first start has to make seven indexes less, which takes 0.05 s.
    """
    for field, params in _fields_left(shard).items():
        shard.update(UpdateOperation.create_field_index(field, params))


def is_payload_indexed(shard: EdgeShard) -> bool:
    """Tell whether all fields that filters use are indexed."""
    return not _fields_left(shard)


def _fields_left(shard: EdgeShard) -> dict[str, KeywordIndexParams | IntegerIndexParams]:
    wanted: dict[str, KeywordIndexParams | IntegerIndexParams] = {
        **{
            field: KeywordIndexParams(is_tenant=field == USER) for field in (USER, THREAD, TURN, DOCUMENT, TERMS, OWNER)
        },
        CREATED: IntegerIndexParams(lookup=False, range=True),
    }
    present = shard.info().payload_schema
    return {field: params for field, params in wanted.items() if field not in present}


def _from_engine(error: BaseException) -> bool:
    # The engine raises exactly `Exception`; a Rust panic's class cannot be imported, and derives from BaseException.
    return type(error) is Exception or type(error).__name__ == "PanicException"
