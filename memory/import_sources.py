"""Which source of an import a person names: a file, a folder, or the address of a database. A composition root.

Nothing is read before the lines are asked for; what a database needs is imported when one is chosen.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from memory.errors import InvalidRequest
from memory.import_source import SourceLine
from memory.importers.archive import archive_lines, is_archive
from memory.importers.files import json_lines, of_files
from memory.importers.markdown import entry_files, read_entry
from memory.importers.sessions import PATTERN, read_session, session_files
from memory.mem_config import MemoryConfig

_COUNT_BYTES = 1 << 20
_MAGIC_BYTES = 4


@dataclass(frozen=True, slots=True)
class Source:
    """The lines of a source, and how many there are where that can be known beforehand."""

    lines: AsyncIterator[SourceLine]
    total: int | None = None


def open_source(named: str, config: MemoryConfig, *, user_id: str | None) -> Source:
    """The source that `named` names; what says no user is `user_id`'s. It reads folders: not for an event loop.

    Raises:
        InvalidRequest: there is no such source, or it is where the service keeps its own data.
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
    from memory.stores.import_mongo import is_same_mongo, read_mongo

    if config.mongodb_url is not None and is_same_mongo(url, config.mongodb_url, database=config.mongodb_database):
        raise InvalidRequest("SOURCE is the service's own database (MONGODB_URL); name another one.")
    return Source(read_mongo(url, user_id=user_id))


def _qdrant(url: str, config: MemoryConfig, user_id: str | None) -> Source:
    from memory.stores.import_qdrant import PREFIX, is_same_qdrant, read_qdrant

    is_own = config.qdrant_url is not None and is_same_qdrant(url, config.qdrant_url)
    if is_own and config.qdrant_collection.startswith(PREFIX):
        raise InvalidRequest("SOURCE holds the service's own collection (QDRANT_COLLECTION); name another server.")
    return Source(read_qdrant(url, user_id=user_id))


def _path(path: Path, config: MemoryConfig, user_id: str | None) -> Source:
    try:
        whole, own = path.resolve(), config.data_dir.resolve()
        if whole == own or own in whole.parents:
            raise InvalidRequest("SOURCE lies in DATA_DIR, where the service keeps its own data; name another path.")
        if path.is_dir():
            return _folder(path, user_id)
        with path.open("rb") as file:
            if is_archive(file.read(_MAGIC_BYTES)):
                return Source(archive_lines(path, most_bytes=config.max_unpacked_mb * 1_000_000))
            file.seek(0)
            pieces = iter(lambda: file.read(_COUNT_BYTES), b"")
            total = sum(piece.count(b"\n") for piece in pieces)
    except OSError as error:
        raise InvalidRequest(f"SOURCE {path} cannot be read ({error.strerror or type(error).__name__}).") from None
    if path.match(PATTERN):
        return Source(of_files([path], lambda file: read_session(file, user_id=user_id)))
    if path.suffix == ".md":
        return Source(of_files([path], lambda file: read_entry(file, user_id=user_id)))
    return Source(json_lines(path, user_id=user_id), total)


def _folder(folder: Path, user_id: str | None) -> Source:
    sessions, entries = session_files(folder), entry_files(folder)
    if not sessions and not entries:
        raise InvalidRequest(
            f"SOURCE {folder} holds neither {PATTERN} nor entries/<conversation>/turns/…/*.md; a file of JSON Lines is "
            "named itself."
        )
    chosen = frozenset(sessions)
    paths = list(chain(sessions, entries))
    return Source(
        of_files(
            paths,
            lambda path: read_session(path, user_id=user_id) if path in chosen else read_entry(path, user_id=user_id),
        )
    )
