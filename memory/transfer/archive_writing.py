"""Streams the zip archive of an export: each file's bytes are sent when it is written; only the list of files is kept.

The archive of two equal exports has equal bytes.
"""

import contextlib
import io
import zipfile
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial

from typing_extensions import override

from recollect.memory.background.bulk import Bulk
from recollect.memory.transfer.export_lines import Line
from recollect.memory.transfer.markdown_files import MarkdownFile, MarkdownFiles

_DATE = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the archive, always the same; the real times stand in the files' text."""
_MODE = 0o600 << 16


class _Pipe(io.RawIOBase):
    """Buffers the bytes that the zip library writes, until `take` removes them.

    It cannot seek, so that the library writes each file's size behind the file instead of going back to its header.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    @override
    def writable(self) -> bool:
        """Return True."""
        return True

    @override
    def write(self, data: "bytes | bytearray | memoryview", /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Keep `data` until the next `take`."""
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Remove and return all bytes since the last `take`."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


async def archive_bytes(batches: AsyncIterator[Sequence[Line]], bulk: Bulk) -> AsyncIterator[bytes]:
    """Yield the archive's bytes as the lines come, after each batch. `bulk` runs the compression in a thread."""
    pipe, files = _Pipe(), MarkdownFiles()
    zipped = zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED)
    try:
        async for lines in batches:
            yield await bulk.run(partial(_write, zipped, pipe, files.take(lines)))
        yield await bulk.run(partial(_write, zipped, pipe, files.end()))
    except BaseException:
        # A thread may still be writing into the archive, and closing then fails; nobody reads the rest.
        with contextlib.suppress(ValueError):
            zipped.close()
        raise
    zipped.close()
    yield pipe.take()


def _write(zipped: zipfile.ZipFile, pipe: _Pipe, files: Iterable[MarkdownFile]) -> bytes:
    """Write `files` into the archive, and return the bytes that it produced."""
    for file in files:
        info = zipfile.ZipInfo(file.path, _DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = _MODE
        zipped.writestr(info, file.content)
    return pipe.take()
