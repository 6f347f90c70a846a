"""Turns ids into names of files and folders for every file system: an id may hold ":", or differ in case alone."""

import re
from hashlib import blake2b

_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_.@-]{0,99}")
_RESERVED = frozenset(
    {"facts", "turns", "documents", "summary", "con", "prn", "aux", "nul"}
    | {f"{name}{number}" for name in ("com", "lpt") for number in range(10)}
)
_MOST_CHARACTERS = 100


def file_name(text: str) -> str:
    """Return the id itself where every file system takes it, else its plain characters with "~" and a digest.

    No two ids have one name. Names have at most 113 characters, without an ending.
    """
    is_plain = _PLAIN.fullmatch(text) and not text.endswith(".") and text.split(".")[0] not in _RESERVED
    if is_plain:
        return text
    digest = blake2b(text.encode(), digest_size=6).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', text)[:_MOST_CHARACTERS]}~{digest}"
