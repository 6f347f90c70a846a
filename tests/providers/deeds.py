"""Deeds that a file would try which took over its reader's process. Used as a kind of file, whose reader tries them.

`python -m tests.providers.deeds WALL,WALL` tries them behind these walls alone.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, SOCK_STREAM, htons, inet_aton
from typing import Any, BinaryIO

from recollect.memory.providers.reading.limits import ReadingLimits, limit_resources
from recollect.memory.providers.reading.walls import confine

IMPORTS_LATER = ()
LIBRARY = ctypes.CDLL(None, use_errno=True)
FORK, OPEN, UNLINK, SYSTEM = LIBRARY.fork, LIBRARY.open, LIBRARY.unlink, LIBRARY.system
SOCKET, CONNECT, SEND = LIBRARY.socket, LIBRARY.connect, LIBRARY.sendto
"""Looked up beforehand: Python's audit sees what is looked up, and nothing of calls."""


def read(file: BinaryIO, limits: ReadingLimits) -> tuple[list[str], str | None]:
    """Try them; the file says where, as {"folder", "port"}."""
    where = json.loads(file.read())
    return [json.dumps({name: _tried(deed) for name, deed in _deeds(Path(where["folder"]), where["port"])})], None


def _tried(deed: Callable[[], object]) -> str:
    try:
        deed()
    except Exception as error:
        return type(error).__name__
    return "done"


def _deeds(folder: Path, port: int) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "spawn", lambda: os.posix_spawn("/bin/true", ["true"], {})
    yield "C spawn", lambda: _good(SYSTEM(b"true"))
    yield "C fork", _fork
    yield "open to truncate", lambda: os.open(folder / "a", os.O_WRONLY | os.O_TRUNC)
    yield "open to read", lambda: os.open(folder / "a", os.O_RDONLY)
    yield "C open", lambda: _good(OPEN(bytes(folder / "b"), os.O_WRONLY | os.O_CREAT, 0o600))
    yield "truncate", lambda: os.truncate(folder / "a", 0)
    yield "rename", lambda: (folder / "f").rename(folder / "c")
    yield "mkdir", lambda: (folder / "d").mkdir()
    yield "chmod", lambda: (folder / "a").chmod(0o777)
    yield "own /proc", lambda: Path("/proc/self/environ").read_bytes()
    yield "parent's /proc", lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes()
    yield "signal", lambda: os.kill(os.getppid(), 0)
    yield "C connect", lambda: _good(CONNECT(_good(SOCKET(AF_INET, SOCK_STREAM, 0)), *_address(port)))
    yield "C send", lambda: _good(SEND(_good(SOCKET(AF_INET, SOCK_DGRAM, 0)), b"out", 3, 0, *_address(port)))
    yield "remove", lambda: (folder / "a").unlink()
    yield "C remove", lambda: _good(UNLINK(bytes(folder / "e")))


def _good(returned: int) -> int:
    if returned < 0 or returned > 255:
        raise OSError(ctypes.get_errno(), "it failed")
    return returned


def _fork() -> None:
    if (child := FORK()) == 0:
        os._exit(0)
    _good(min(child, 255))
    os.waitpid(child, 0)


def _address(port: int) -> tuple[Any, int]:
    packed = AF_INET.to_bytes(2, sys.byteorder) + htons(port).to_bytes(2, sys.byteorder) + inet_aton("127.0.0.1")
    return ctypes.create_string_buffer(packed.ljust(16, b"\0"), 16), 16


if __name__ == "__main__":
    given = BytesIO(sys.stdin.buffer.read())
    limit_resources(ReadingLimits(1, 1, 1))
    in_force = confine(sys.argv[1].split(","))
    (said,), _ = read(given, ReadingLimits(1, 1, 1))
    sys.stdout.write(json.dumps([in_force, json.loads(said)]))
