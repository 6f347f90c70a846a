"""The process that reads one file: standard input is the file, standard output says what it holds, as one JSON object.

`python -m memory.providers.reading.child KIND PAGES CHARACTERS UNPACKED_BYTES MEMORY_BYTES SECONDS`. It limits itself
before it looks at the file, and imports only what the file's kind needs. Whoever started it kills it when it takes too
long.
"""

import json
import logging
import sys
from importlib import import_module
from typing import Any, NoReturn

from memory.providers.reading.limits import Limits, Refused, confine, limit_resources

MODULES = {kind: f"memory.providers.reading.{kind}" for kind in ("pdf", "docx", "html")}
"""Each has a function `read(file, limits)` that returns the texts of its pages, and a title or None."""
MOST_TITLE = 200
_DROPPED = {code: None for code in (*range(32), 127) if chr(code) not in "\n\t"}


def main() -> None:
    """Read the file and say what it holds, or why it cannot be read."""
    kind, *numbers = sys.argv[1:]
    limits = Limits(*map(int, numbers))
    logging.disable()  # what a library logs may quote the file
    try:
        limit_resources(limits)
        reader = import_module(MODULES[kind])
        confine()
        _say(_read(reader, limits))
    except Refused as refused:
        _refuse(str(refused))
    except MemoryError:
        _refuse(f"needs more than {limits.memory // 1_000_000} MB of memory to be read")
    except RecursionError:
        _refuse("is nested too deeply to be read")
    except Exception:  # a broken file may raise anything, in any library
        _refuse("is damaged, or not what its name says")


def _read(reader: Any, limits: Limits) -> dict[str, Any]:
    with open(0, "rb", closefd=False) as file:
        pages, title = reader.read(file, limits)
    cleaned = [_clean(page) for page in pages]
    if not any(page.strip() for page in cleaned):
        raise Refused("has no text (scanned pages are pictures)")
    if sum(map(len, cleaned)) > limits.characters:
        raise limits.too_long()
    named = " ".join(_clean(str(title or "")).split())
    return {"pages": cleaned, "title": named[:MOST_TITLE] or None}


def _clean(text: str) -> str:
    """The text without what no store can hold."""
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
