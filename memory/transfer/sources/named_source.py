"""Opens the source of an import that a person names: a file, a folder, or a database's address. A composition root.

A database is read when the lines are iterated over; its driver is imported when such a source is chosen.
"""

from collections.abc import AsyncIterator
from dataclasses import field
from pathlib import Path

from recollect.memory.transfer.line_source import SourceHoldings, SourceLine
from recollect.memory.transfer.sources.app_database import MAGIC, is_database, read_database
from recollect.memory.transfer.sources.archive import archive_lines, is_archive
from recollect.memory.transfer.sources.files import json_lines, of_files
from recollect.memory.transfer.sources.folders import Reader, holds_session, is_readable, sort_files
from recollect.memory.transfer.sources.sessions import PATTERNS
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig

_COUNT_BYTES = 1 << 20
MOST_NAMED = 20


@frozen
class Source:
    """Holds a source's lines, their number where it is known beforehand, and the names of what it holds.

    `expected` describes what is read from such a source, for the message that it holds nothing of it.
    """

    lines: AsyncIterator[SourceLine]
    total: int | None = None
    holdings: SourceHoldings = field(default_factory=SourceHoldings)
    expected: str = "messages or facts"


def open_source(named: str, config: MemoryConfig, *, user_id: str | None) -> Source:
    """Return the source called `named`; records that name no user are `user_id`'s. Call it in a thread: it blocks.

    Raises:
        InvalidRequest: the source does not exist, or is where the service keeps its own data.
    """
    scheme = named.partition("://")[0].lower() if "://" in named else ""
    if scheme in {"mongodb", "mongodb+srv"}:
        return _mongo(named, config, user_id)
    if scheme in {"http", "https", "qdrant"}:
        return _qdrant(named, config, user_id)
    if scheme:
        raise InvalidRequest("SOURCE must be a path, a mongodb:// address or the http:// address of a Qdrant server.")
    return _path(Path(named).expanduser(), config, user_id)


def _mongo(url: str, config: MemoryConfig, user_id: str | None) -> Source:
    from recollect.memory.transfer.sources.mongo import FACTS, TALKS, is_same_mongo, read_mongo

    is_own = config.mongodb_url is not None and is_same_mongo(url, config.mongodb_url, database=config.mongodb_database)
    if is_own and not config.mongodb_prefix:
        raise InvalidRequest(
            "SOURCE is the service's own database (MONGODB_URL); name another one, or set MONGODB_PREFIX, which keeps "
            "the service's own collections apart."
        )
    holdings = SourceHoldings()
    lines = read_mongo(url, user_id=user_id, holdings=holdings, own_prefix=config.mongodb_prefix if is_own else None)
    return Source(lines, holdings=holdings, expected=f"the collections {', '.join((*TALKS, FACTS))}")


def _qdrant(url: str, config: MemoryConfig, user_id: str | None) -> Source:
    from recollect.memory.transfer.sources.qdrant import PREFIX, is_same_qdrant, read_qdrant

    is_own = config.qdrant_url is not None and is_same_qdrant(url, config.qdrant_url)
    if is_own and config.qdrant_collection.startswith(PREFIX):
        raise InvalidRequest("SOURCE holds the service's own collection (QDRANT_COLLECTION); name another server.")
    holdings = SourceHoldings()
    own = config.qdrant_collection if config.qdrant_url is not None and is_same_qdrant(url, config.qdrant_url) else None
    lines = read_qdrant(url, user_id=user_id, holdings=holdings, own=own)
    return Source(lines, holdings=holdings, expected=f"collections {PREFIX}{{user_id}}_{{thread_id}}")


def _path(path: Path, config: MemoryConfig, user_id: str | None) -> Source:
    try:
        whole, own = path.resolve(), config.data_dir.resolve()
        if whole == own or own in whole.parents:
            raise InvalidRequest("SOURCE lies in DATA_DIR, where the service keeps its own data; name another path.")
        if path.is_dir():
            return _folder(path, user_id)
        with path.open("rb") as file:
            beginning = file.read(len(MAGIC))
            if is_archive(beginning):
                lines = archive_lines(path, most_bytes=config.max_unpacked_mb * 1_000_000)
                return Source(lines, holdings=SourceHoldings([path.name]))
            if is_database(beginning):
                return _database(path, user_id)
            file.seek(0)
            pieces = iter(lambda: file.read(_COUNT_BYTES), b"")
            total = sum(piece.count(b"\n") for piece in pieces)
    except OSError as error:
        raise InvalidRequest(f"SOURCE {path} cannot be read ({error.strerror or type(error).__name__}).") from None
    holdings = SourceHoldings([path.name])
    if is_readable(path) or holds_session(path):
        return Source(of_files([path], Reader([path], holdings, user_id).read), holdings=holdings)
    return Source(json_lines(path, user_id=user_id), total, holdings)


def _database(path: Path, user_id: str | None) -> Source:
    holdings = SourceHoldings()
    lines = of_files([path], lambda file: read_database(file, user_id=user_id, holdings=holdings))
    return Source(
        lines, holdings=holdings, expected="a table memory (id, content, tags, created_at), a table of messages"
    )


def _folder(folder: Path, user_id: str | None) -> Source:
    paths, skipped = sort_files(folder)
    if not paths:
        named = f" It holds {', '.join(skipped[:MOST_NAMED])}." if skipped else ""
        raise InvalidRequest(
            f"SOURCE {folder} holds neither {', '.join(PATTERNS)}, nor personal_meta.json, a SQLite file or "
            f"entries/<conversation>/turns/…/*.md; a file of JSON Lines is named itself.{named}"
        )
    holdings = SourceHoldings(skipped=skipped)
    return Source(of_files(paths, Reader(paths, holdings, user_id).read), holdings=holdings)
