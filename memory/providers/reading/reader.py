"""Starts a process for each file that may do harm, and bounds it."""

import asyncio
import codecs
import contextlib
import io
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import astuple
from typing import Any, BinaryIO

from memory.document_kind import HEAD_BYTES
from memory.document_reader import ReadText, checked_text, unreadable
from memory.library import DocumentKind
from memory.providers.reading.limits import Limits

AT_ONCE = 2
"""So many files are read at the same time; others wait."""
_CHILD = "memory.providers.reading.child"
_PASSED_ON = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Of the environment: the rest, keys among it, is nothing for a process that reads foreign files."""
_PIECE = 1_000_000


class FileReader:
    """Reads text and Markdown itself, and everything else in a process of its own."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def read(self, file: BinaryIO, kind: DocumentKind) -> ReadText:
        """See the seam."""
        if kind in {"text", "markdown"}:
            return ReadText([await asyncio.to_thread(_decoded, file, self._limits.characters)])
        async with self._slots:
            said = await self._read_apart(file, kind)
        if (refused := said.get("refused")) is not None:
            raise unreadable(str(refused))
        return ReadText([str(page) for page in said["pages"]], is_paged=kind == "pdf", title=said["title"])

    async def _read_apart(self, file: BinaryIO, kind: DocumentKind) -> dict[str, Any]:
        """What the process says."""
        limits = self._limits
        descriptor = await asyncio.to_thread(_from_the_beginning, file)
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-B", "-m", _CHILD, kind, *map(str, astuple(limits))),
            stdin=descriptor,
            stdout=PIPE,
            stderr=DEVNULL,
            env=environment,
        )
        try:
            async with asyncio.timeout(limits.seconds):
                # As UTF-8 a character takes 4 bytes at most, as JSON escapes some take 6.
                answer = await _read_at_most(process, 6 * limits.characters + _PIECE)
                if answer:
                    await process.wait()
        except TimeoutError:
            raise unreadable(f"takes more than {limits.seconds} seconds to be read") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        try:
            said: dict[str, Any] = await asyncio.to_thread(json.loads, answer)
        except ValueError:  # it was killed by its limits, before it could say so
            needed = f"{limits.memory // 1_000_000} MB of memory or {limits.seconds} seconds"
            raise unreadable(f"needs more than {needed} to be read") from None
        return said


async def _read_at_most(process: Process, most: int) -> bytes:
    """The process's whole answer; b"" where it says more than `most` bytes."""
    assert process.stdout is not None
    pieces, size = list[bytes](), 0
    while piece := await process.stdout.read(_PIECE):
        size += len(piece)
        if size > most:
            return b""
        pieces.append(piece)
    return b"".join(pieces)


def _from_the_beginning(file: BinaryIO) -> int:
    """The descriptor of the file, which is on the disk from now on, at its beginning."""
    file.seek(0)
    descriptor = file.fileno()
    file.flush()
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _decoded(file: BinaryIO, most: int) -> str:
    """A text file's text: UTF-8, or UTF-16 with its mark."""
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
