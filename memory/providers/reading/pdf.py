"""Reads PDF by pypdf."""

from typing import BinaryIO

import pypdf
from pypdf.errors import LimitReachedError

from recollect.memory.providers.reading.limits import ForbiddenCall, ReadingLimits

IMPORTS_LATER: tuple[str, ...] = ("pypdf",)


def read(file: BinaryIO, limits: ReadingLimits) -> tuple[list[str], str | None]:
    """Return the text of each page."""
    reader = pypdf.PdfReader(file, strict=False)
    if reader.is_encrypted:
        raise ForbiddenCall("is encrypted; save it without a password")
    if len(reader.pages) > limits.pages:
        raise limits.too_many_pages(len(reader.pages))
    pages, characters = list[str](), 0
    try:
        for page in reader.pages:
            pages.append(page.extract_text())
            characters += len(pages[-1])
            if characters > limits.characters:
                raise limits.too_long()
    except LimitReachedError:
        raise limits.too_large_unpacked() from None
    return pages, reader.metadata.title if reader.metadata is not None else None
