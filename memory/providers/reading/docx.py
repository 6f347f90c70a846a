"""DOCX, by mammoth, which makes HTML of it."""

import re
from io import BytesIO
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

import mammoth  # pyright: ignore[reportMissingTypeStubs]

from memory.providers.reading.html import to_markdown
from memory.providers.reading.limits import Limits, Refused

_MAMMOTH: Any = mammoth
"""It has no types."""
MOST_PARTS = 10_000
_DECLARED = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)


def read(file: BinaryIO, limits: Limits) -> tuple[list[str], str | None]:
    """The text as one page of Markdown, without its pictures."""
    _check(file, limits)
    file.seek(0)
    unnamed = BytesIO(file.read())  # mammoth looks for what lies beside a file that has a name
    made = _MAMMOTH.convert_to_html(unnamed, convert_image=_MAMMOTH.images.img_element(_nothing))
    text, _ = to_markdown(made.value)
    return [text], None


def _nothing(image: object) -> dict[str, str]:
    return {}


def _check(file: BinaryIO, limits: Limits) -> None:
    """Refuse what unpacks to too much, is encrypted, holds macros, or declares entities, which Word never does.

    A part is never read beyond the length that the archive's list says, so their sum is a bound.
    """
    try:
        archive = ZipFile(file)
    except BadZipFile:
        raise Refused("is a damaged archive") from None
    parts = archive.infolist()
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > limits.unpacked:
        raise limits.too_large_unpacked()
    if any(part.flag_bits & 1 for part in parts):
        raise Refused("is encrypted; save it without a password")
    names = {part.filename.lower() for part in parts}
    if any(name.endswith("vbaproject.bin") for name in names):
        raise Refused("contains macros; save it as DOCX without them")
    if not {"[content_types].xml", "word/document.xml"} <= names:
        raise Refused("is no DOCX")
    for part in parts:
        if part.filename.lower().endswith((".xml", ".rels")):
            said = archive.read(part)
            if part.filename.lower() == "[content_types].xml" and b"macroenabled" in said.lower():
                raise Refused("contains macros; save it as DOCX without them")
            if _DECLARED.search(said):
                raise Refused("declares entities, which no word processor does")
