"""Reads one file in a process of its own: it comes as standard input, and its text leaves as one JSON object.

Start it with `python -m recollect.memory.providers.reading.child KIND PAGES CHARACTERS UNPACKED_BYTES MEMORY_BYTES
SECONDS`. It limits itself and raises its walls before it reads the file, and imports only what the file's kind
needs. Whoever started it kills it when it takes too long. With the one argument `walls` it lists this machine's walls.
"""

import json
import logging
import sys
import warnings
from importlib import import_module
from typing import Any, BinaryIO, NoReturn

from recollect.memory.providers.reading.limits import ForbiddenCall, ReadingLimits, limit_resources
from recollect.memory.providers.reading.preloading import preload
from recollect.memory.providers.reading.walls import WALLS, confine

MODULES = {kind: f"recollect.memory.providers.reading.{kind}" for kind in ("pdf", "docx", "html")}
"""Each has a function `read(file, limits)` that returns the texts of its pages, and a title or None, and names in
`IMPORTS_LATER` the packages that import parts of themselves only when they need them."""
MOST_TITLE = 200
_DROPPED = {code: None for code in (*range(32), 127) if chr(code) not in "\n\t"}


def main() -> None:
    """Read the file and print its content, or why it cannot be read."""
    if sys.argv[1:] == ["walls"]:
        limit_resources(ReadingLimits(pages=1, characters=1, unpacked=1))
        in_force = confine()
        _say({"in_force": in_force, "missing": [name for name in WALLS if name not in in_force]})
        return
    kind, *numbers = sys.argv[1:]
    limits = ReadingLimits(*map(int, numbers))
    logging.disable()  # a library's logs and warnings may quote the file
    warnings.simplefilter("ignore")
    try:
        _say(_read(kind, limits))
    except ForbiddenCall as refused:
        _refuse(str(refused))
    except MemoryError:
        _refuse(f"needs more than {limits.memory // 1_000_000} MB of memory to be read")
    except RecursionError:
        _refuse("is nested too deeply to be read")
    except Exception:  # a broken file may raise anything, in any library
        _refuse("is damaged, or not what its name says")


def _read(kind: str, limits: ReadingLimits) -> dict[str, Any]:
    limit_resources(limits)
    reader = import_module(MODULES[kind])
    preload(reader.IMPORTS_LATER)
    with open(0, "rb", closefd=False) as file:  # `open` inspects the file, which the walls forbid
        confine()
        return _held(reader, file, limits)


def _held(reader: Any, file: BinaryIO, limits: ReadingLimits) -> dict[str, Any]:
    """Return the file's content: its pages, and its title or None."""
    pages, title = reader.read(file, limits)
    cleaned = [_clean(page) for page in pages]
    if not any(page.strip() for page in cleaned):
        raise ForbiddenCall("has no text (scanned pages are pictures)")
    if sum(map(len, cleaned)) > limits.characters:
        raise limits.too_long()
    named = " ".join(_clean(str(title or "")).split())
    return {"pages": cleaned, "title": named[:MOST_TITLE] or None}


def _clean(text: str) -> str:
    """Return the text without characters that no store can hold."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").translate(_DROPPED)
    return lines.encode("utf-8", "replace").decode("utf-8")


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode())
    sys.stdout.buffer.flush()


def _refuse(reason: str) -> NoReturn:
    _say({"refused": reason})
    sys.exit(0)


if __name__ == "__main__":
    main()
