"""Reads DOCX by mammoth, which converts it to HTML."""

from io import BytesIO
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

import mammoth  # pyright: ignore[reportMissingTypeStubs]

from recollect.memory.providers.reading.html import html_to_markdown
from recollect.memory.providers.reading.limits import ForbiddenCall, ReadingLimits
from recollect.memory.providers.reading.xml_parts import attributes_of, refuse_declarations

_MAMMOTH: Any = mammoth
"""It has no types."""
IMPORTS_LATER: tuple[str, ...] = ("mammoth", "xml")
MOST_PARTS = 10_000
_TYPES = "[content_types].xml"


def read(file: BinaryIO, limits: ReadingLimits) -> tuple[list[str], str | None]:
    """Return the text as one page of Markdown, without pictures."""
    _check(file, limits)
    file.seek(0)
    unnamed = BytesIO(file.read())  # mammoth looks for files beside one that has a name
    made = _MAMMOTH.convert_to_html(unnamed, convert_image=_MAMMOTH.images.img_element(_nothing))
    text, _ = html_to_markdown(made.value)
    return [text], None


def _nothing(image: object) -> dict[str, str]:
    return {}


def _check(file: BinaryIO, limits: ReadingLimits) -> None:
    """Refuse a file that unpacks to too much, is encrypted, holds macros, or declares entities (Word never does).

    No part is read beyond its length in the archive's directory, so the sum of those lengths is a bound.
    """
    try:
        archive = ZipFile(file)
    except BadZipFile:
        raise ForbiddenCall("is a damaged archive") from None
    parts = archive.infolist()
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > limits.unpacked:
        raise limits.too_large_unpacked()
    if any(part.flag_bits & 1 for part in parts):
        raise ForbiddenCall("is encrypted; save it without a password")
    if not {_TYPES, "word/document.xml"} <= {part.filename.lower() for part in parts}:
        raise ForbiddenCall("is no DOCX")
    for part in parts:
        _check_part(archive, part)


def _check_part(archive: ZipFile, part: ZipInfo) -> None:
    """Refuse macros and declarations in a part of any name: the archive may declare any part as its text."""
    name = part.filename.lower()
    if name.endswith("vbaproject.bin"):
        raise _with_macros()
    with archive.open(part) as opened:
        refuse_declarations(opened, doctype=name.endswith((".xml", ".rels")))
    if name == _TYPES:
        with archive.open(part) as opened:
            types = [value.lower() for value in attributes_of(opened)]
        if any("macroenabled" in value or "vbaproject" in value for value in types):
            raise _with_macros()


def _with_macros() -> ForbiddenCall:
    return ForbiddenCall("contains macros; save it as DOCX without them")
