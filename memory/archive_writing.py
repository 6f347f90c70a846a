"""A zip archive of an export, written as it goes: nothing of it is kept but the list of its files."""

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Iterable, Sequence

from memory.export_lines import Line
from memory.markdown_files import MarkdownFile, MarkdownFiles

_DATE = (1980, 1, 1, 0, 0, 0)
"""One export has one archive: times stand in the files."""
_MODE = 0o600 << 16


class _Pipe(io.RawIOBase):
    """What was written since it was last emptied. It cannot be sought in, and so sizes stand behind each file."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: "bytes | bytearray | memoryview", /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Keep it until it is taken."""
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """All that was written since."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


async def archive(batches: AsyncIterator[Sequence[Line]]) -> AsyncIterator[bytes]:
    """The archive's bytes, as the lines come. Compressed in a thread."""
    pipe, files = _Pipe(), MarkdownFiles()
    zipped = zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED)
    try:
        async for lines in batches:
            yield await asyncio.to_thread(_write, zipped, pipe, files.take(lines))
        yield await asyncio.to_thread(_write, zipped, pipe, files.end())
    finally:
        zipped.close()
    yield pipe.take()


def _write(zipped: zipfile.ZipFile, pipe: _Pipe, files: Iterable[MarkdownFile]) -> bytes:
    for file in files:
        info = zipfile.ZipInfo(file.path, _DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = _MODE
        zipped.writestr(info, file.content)
    return pipe.take()
