"""Starts a process for each file that may do harm, and limits its time and output."""

import asyncio
import codecs
import contextlib
import io
import json
import logging
import math
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from dataclasses import astuple
from typing import Any, BinaryIO

from typing_extensions import override

from recollect.memory.background.bulk import WORKERS, Bulk
from recollect.memory.documents.document_kind import HEAD_BYTES
from recollect.memory.ports.document_reader import DocumentReader, ReadText, Walls, checked_text, unreadable
from recollect.memory.providers.reading.limits import ReadingLimits
from recollect.memory.values.document import DocumentKind

logger = logging.getLogger(__name__)

AT_ONCE = WORKERS
"""So many files are read at the same time, where BULK_WORKERS does not say otherwise; others wait."""

_CHILD = "recollect.memory.providers.reading.child"
_PASSED_ON = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Of the environment: the rest, keys among it, is nothing for a process that reads foreign files."""
_PIECE = 1_000_000
_WALLS_SECONDS = 10
_WALLS_AGAIN_SECONDS = 60
"""A child process that did not answer is asked again after this time: /health must not wait for it each time."""


class FileReader(DocumentReader):
    """Reads text and Markdown itself, and everything else in a process of its own.

    Reading is `bulk` work: as many files are read at a time as `bulk` has threads, and others wait.
    """

    def __init__(
        self, limits: ReadingLimits, bulk: Bulk | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._bulk = bulk or Bulk()
        self._slots = asyncio.Semaphore(self._bulk.workers)
        self._asking = asyncio.Lock()
        self._walls: Walls | None = None
        self._clock = clock
        self._ask_walls_at = -math.inf

    @override
    async def read(self, file: BinaryIO, kind: DocumentKind) -> ReadText:
        if kind in {"text", "markdown"}:
            return ReadText([await self._bulk.run(lambda: _decoded(file, self._limits.characters))])
        async with self._slots:
            said = await self._read_apart(file, kind)
        if (refused := said.get("refused")) is not None:
            raise unreadable(str(refused))
        return ReadText([str(page) for page in said["pages"]], is_paged=kind == "pdf", title=said["title"])

    @override
    async def walls(self) -> Walls:
        """Ask a child process once; without its answer no wall is known, and it is asked again later."""
        async with self._asking:
            if self._walls is None and self._clock() >= self._ask_walls_at:
                self._walls = await _asked_walls()
                self._ask_walls_at = self._clock() + _WALLS_AGAIN_SECONDS
            return self._walls or Walls((), ())

    async def _read_apart(self, file: BinaryIO, kind: DocumentKind) -> dict[str, Any]:
        """Return the answer of a child process that reads the file."""
        limits = self._limits
        descriptor = await self._bulk.run(lambda: _from_the_beginning(file))
        process = await _start(kind, *map(str, astuple(limits)), stdin=descriptor)
        try:
            # A character takes at most 4 bytes in UTF-8, and 6 as a JSON escape.
            answer = await _answer(process, seconds=limits.seconds, most=6 * limits.characters + _PIECE)
        except TimeoutError:
            raise unreadable(f"takes more than {limits.seconds} seconds to be read") from None
        try:
            said: dict[str, Any] = await self._bulk.run(lambda: json.loads(answer))
        except ValueError:  # its limits killed it before it could answer
            needed = f"{limits.memory // 1_000_000} MB of memory or {limits.seconds} seconds"
            raise unreadable(f"needs more than {needed} to be read") from None
        return said


async def _asked_walls() -> Walls | None:
    """Return the walls that a child process reports; None where it does not answer in time."""
    try:
        process = await _start("walls", stdin=DEVNULL)
        said = json.loads(await _answer(process, seconds=_WALLS_SECONDS, most=_PIECE))
    except (OSError, TimeoutError, ValueError):
        return None
    walls = Walls(tuple(said["in_force"]), tuple(said["missing"]))
    if walls.missing:
        logger.warning(
            "this machine lacks walls around the process that reads files",
            extra={"action": "file_reader_walls", "in_force": list(walls.in_force), "missing": list(walls.missing)},
        )
    return walls


async def _start(*arguments: str, stdin: int) -> Process:
    """Start a child process without our environment variables."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-B", "-m", _CHILD, *arguments),
        stdin=stdin,
        stdout=PIPE,
        stderr=DEVNULL,
        env=environment,
    )


async def _answer(process: Process, *, seconds: float, most: int) -> bytes:
    """Return the process's answer, or b"" where it is over `most` bytes. The process has ended by then, in any case.

    Raises:
        TimeoutError: it takes longer.
    """
    try:
        async with asyncio.timeout(seconds):
            answer = await _read_at_most(process, most)
            if answer:
                await process.wait()
            return answer
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _read_at_most(process: Process, most: int) -> bytes:
    """Return the process's whole answer; b"" where it is over `most` bytes."""
    assert process.stdout is not None
    pieces, size = list[bytes](), 0
    while piece := await process.stdout.read(_PIECE):
        size += len(piece)
        if size > most:
            return b""
        pieces.append(piece)
    return b"".join(pieces)


def _from_the_beginning(file: BinaryIO) -> int:
    """Write the file to disk if it is in memory, rewind it, and return its descriptor."""
    file.seek(0)
    descriptor = file.fileno()
    file.flush()
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _decoded(file: BinaryIO, most: int) -> str:
    """Return a text file's text: UTF-8, or UTF-16 with a byte order mark."""
    file.seek(0)
    head = file.read(HEAD_BYTES)
    file.seek(0)
    encoding = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    reader = io.TextIOWrapper(file, encoding=encoding)
    try:
        text = reader.read(most + 1)
    except UnicodeDecodeError:
        raise unreadable("is no UTF-8 text") from None
    finally:
        reader.detach()
    return checked_text(text, most=most)
