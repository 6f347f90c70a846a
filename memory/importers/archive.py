"""Zip archives of an export: read where they lie, never unpacked onto a disk, and no further than they may be."""

import asyncio
import re
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

from memory.errors import InvalidRequest, TooLarge
from memory.front_matter import NoFrontMatter
from memory.import_source import SourceLine, Unreadable
from memory.importers.files import Said
from memory.markdown_files import markdown_lines

MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
"""What an archive begins with; the second is one of no files."""
MOST_FILES = 100_000
_ENTRY = b"PK\x01\x02"
_HEAD_BYTES = 2_000
_POSITION = re.compile(rb"^position: (\d{1,10})\s*$", re.MULTILINE)
_ENCRYPTED = 0x1
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_AT_ONCE = 50


def is_archive(beginning: bytes) -> bool:
    """Whether a file that begins so is a zip archive."""
    return beginning.startswith(MAGIC)


def entries_in(piece: bytes) -> int:
    """How many files' entries a piece of an archive holds at most."""
    return piece.count(_ENTRY)


async def archive_lines(file: Path | IO[bytes], *, most_bytes: int) -> AsyncIterator[SourceLine]:
    """The lines of an export's archive in their order, whatever the order of its files.

    Raises:
        InvalidRequest: it is damaged, or no archive.
        TooLarge: it would unpack to more than so many bytes, or has too many files.
    """
    opened = await asyncio.to_thread(_open, file, most_bytes)
    with closing(opened):
        ordered = await asyncio.to_thread(_ordered, opened)
        number = 0
        for start in range(0, len(ordered), _AT_ONCE):
            for said in await asyncio.to_thread(_read_all, opened, ordered[start : start + _AT_ONCE]):
                number += 1
                yield SourceLine(number, said)


def _open(file: Path | IO[bytes], most_bytes: int) -> zipfile.ZipFile:
    try:
        opened = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise _damaged() from error
    files = opened.infolist()
    # No more is ever unpacked of a file than it says itself.
    if sum(one.file_size for one in files) > most_bytes or len(files) > MOST_FILES:
        opened.close()
        raise TooLarge(
            f"The archive unpacks to more than {most_bytes // 1_000_000:,} MB (MAX_UNPACKED_MB), or has more than "
            f"{MOST_FILES:,} files; import the export as JSON Lines."
        )
    return opened


def _ordered(opened: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of an export: documents, threads, turns by their places, facts. Others are passed over."""
    kept: list[tuple[tuple[int, str, int, int], zipfile.ZipInfo]] = []
    for number, info in enumerate(opened.infolist()):
        folder, _, name = info.filename.rpartition("/")
        kind = _kind(folder.rpartition("/")[2], name)
        if kind is not None and not info.is_dir():
            position = _position(opened, info) if kind == _TURN else 0
            kept.append(((kind, folder, position, number), info))
    return [info for _, info in sorted(kept, key=lambda pair: pair[0])]


_TURN = 2


def _kind(folder: str, name: str) -> int | None:
    if name == "summary.md":
        return 1
    if not name.endswith(".md"):
        return None
    return {"documents": 0, "turns": _TURN, "facts": 3}.get(folder)


def _position(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """The turn's place in its thread, which stands near the top of its file."""
    found = _POSITION.search(_bytes(opened, info, _HEAD_BYTES) or b"")
    return int(found[1]) if found else 0


def _read_all(opened: zipfile.ZipFile, files: list[zipfile.ZipInfo]) -> list[Said]:
    return [said for info in files for said in _read(opened, info)]


def _read(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[Said]:
    content = _bytes(opened, info, info.file_size)
    name = info.filename.rpartition("/")[2][:200]
    if content is None:
        yield Unreadable(f"{name} cannot be unpacked: it is damaged, encrypted, or packed in another way than deflate.")
        return
    try:
        yield from markdown_lines(content)
    except NoFrontMatter as error:
        yield Unreadable(f"{name}: {error}")


def _bytes(opened: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes | None:
    """The beginning of the file; None where it cannot be read."""
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _PLAIN:
        return None
    try:
        with opened.open(info) as file:
            return file.read(most)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError):
        return None


def _damaged() -> InvalidRequest:
    return InvalidRequest("The archive is damaged, or no zip archive; export it again.")
