"""Reads zip archives of an export in place: nothing is unpacked onto a disk, and sizes are bounded beforehand."""

import re
import zipfile
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

from recollect.memory.background.batches import batches
from recollect.memory.background.bulk import Bulk
from recollect.memory.transfer.front_matter import NoFrontMatter
from recollect.memory.transfer.line_source import SourceLine, Unreadable
from recollect.memory.transfer.markdown_files import markdown_lines
from recollect.memory.transfer.sources.files import Said
from recollect.memory.values.errors import InvalidRequest, TooLarge

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of an archive; the second are those of an archive without files."""
MOST_FILES = 100_000
_ENTRY = b"PK\x01\x02"
_HEAD_BYTES = 2_000
_POSITION = re.compile(rb"^position: (\d{1,10})\s*$", re.MULTILINE)
_ENCRYPTED = 0x1
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_AT_ONCE = 50
_Place = tuple[int, str, int]
_MOST_NAME_CHARACTERS = 200
_OF_THE_SYSTEM = frozenset({".ds_store", "thumbs.db", "desktop.ini"})


def is_archive(beginning: bytes) -> bool:
    """Tell whether a file with this `beginning` is a zip archive."""
    return beginning.startswith(MAGIC)


def entries_in(piece: bytes) -> int:
    """Count the marks of files' entries in a piece of an archive: the most entries that it can hold."""
    return piece.count(_ENTRY)


async def archive_lines(
    file: Path | IO[bytes], bulk: Bulk | None = None, *, most_bytes: int
) -> AsyncIterator[SourceLine]:
    """Yield the lines of an export's archive in the export's order, in whatever order its files are packed.

    `bulk` unpacks them in a thread.

    Raises:
        InvalidRequest: the archive is damaged, or the file is no archive.
        TooLarge: it would unpack to more than `most_bytes`, or has more than `MOST_FILES`.
    """
    bulk = bulk or Bulk()
    opened = await bulk.run(lambda: _open(file, most_bytes))
    with closing(opened):
        placed = await bulk.each(partial(_placed, opened), _meant(opened))
        ordered = [info for _, info in sorted(placed, key=lambda pair: pair[0])]
        number = 0
        for batch in batches(ordered, _AT_ONCE):
            for said in chain.from_iterable(await bulk.each(partial(_read, opened), batch)):
                number += 1
                yield SourceLine(number, said)


def _open(file: Path | IO[bytes], most_bytes: int) -> zipfile.ZipFile:
    try:
        opened = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise _damaged() from error
    files = opened.infolist()
    # The sizes are the archive's own claims; `_bytes` never unpacks more of a file than it claims.
    if sum(one.file_size for one in files) > most_bytes or len(files) > MOST_FILES:
        opened.close()
        raise TooLarge(
            f"The archive unpacks to more than {most_bytes // 1_000_000:,} MB (MAX_UNPACKED_MB), or has more than "
            f"{MOST_FILES:,} files; import the export as JSON Lines."
        )
    return opened


def _meant(opened: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the Markdown files; without any, all files but the system's, each of which is then refused by name."""
    meant = [info for info in opened.infolist() if not info.is_dir() and not _is_of_the_system(info.filename)]
    return [info for info in meant if info.filename.endswith(".md")] or meant


def _placed(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[_Place, zipfile.ZipInfo]:
    """Return the file with its rank: documents, threads, turns by position, facts, then files of no export."""
    folder, _, name = info.filename.rpartition("/")
    kind = _kind(folder.rpartition("/")[2], name)
    return (kind, folder, _position(opened, info) if kind == _TURN else 0), info


_TURN, _OTHER = 2, 4


def _kind(folder: str, name: str) -> int:
    if name == "summary.md":
        return 1
    return {"documents": 0, "turns": _TURN, "facts": 3}.get(folder, _OTHER)


def _is_of_the_system(path: str) -> bool:
    """Tell whether an operating system added the file to the archive by itself."""
    return path.startswith("__MACOSX/") or path.rpartition("/")[2].lower() in _OF_THE_SYSTEM


def _position(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Return the turn's position in its thread, which stands near the top of its file; 0 without one."""
    found = _POSITION.search(_bytes(opened, info, _HEAD_BYTES) or b"")
    return int(found[1]) if found else 0


def _read(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> list[Said]:
    name = _shown(info.filename)
    if not name.endswith(".md"):
        return [Unreadable(f"{name} is no Markdown file of an export.")]
    content = _bytes(opened, info, info.file_size)
    if content is None:
        problem = "it is damaged, encrypted, or packed in another way than deflate"
        return [Unreadable(f"{name} cannot be unpacked: {problem}.")]
    try:
        return [*markdown_lines(content)]
    except NoFrontMatter as error:
        return [Unreadable(f"{name}: {error}")]


def _bytes(opened: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes | None:
    """Return the first `most` bytes of the file; None where it cannot be read."""
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _PLAIN:
        return None
    try:
        with opened.open(info) as file:
            return file.read(most)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
        return None


def _shown(path: str) -> str:
    """Return a file's path for a sentence: printable, and of a long one the end."""
    return "".join(char if char.isprintable() else "?" for char in path)[-_MOST_NAME_CHARACTERS:]


def _damaged() -> InvalidRequest:
    return InvalidRequest("The archive is damaged, or no zip archive; export it again.")
