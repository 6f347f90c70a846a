"""What the process that reads a file may use, and how it is kept to that."""

import sys
from dataclasses import dataclass
from typing import Any

try:
    import resource
except ImportError:  # not on Windows: there the time limit alone holds
    resource = None

_FORBIDDEN = ("socket.", "subprocess.", "urllib.", "http.", "ftplib.", "os.system", "os.exec", "os.fork", "os.spawn")
_WRITING = set("wax+")


class Refused(Exception):
    """Why the file cannot be read, as the end of "it …"."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most pages and characters of a document, bytes that a file may unpack to, and what reading it may take."""

    pages: int
    characters: int
    unpacked: int
    memory: int = 512_000_000
    seconds: int = 30

    def too_many_pages(self, pages: int) -> Refused:
        """The refusal of so many pages."""
        return Refused(f"has {pages} pages, more than {self.pages} (MAX_DOCUMENT_PAGES)")

    def too_long(self) -> Refused:
        """The refusal of a text that is too long."""
        return Refused(f"has more than {self.characters:,} characters (MAX_DOCUMENT_CHARACTERS)")

    def too_large_unpacked(self) -> Refused:
        """The refusal of a file that unpacks to too much."""
        return Refused(f"unpacks to more than {self.unpacked // 1_000_000} MB (MAX_UNPACKED_MB)")


def limit_resources(limits: Limits) -> None:
    """Limit this process's memory and time, and let it write no file."""
    if resource is None:
        return
    _limit("RLIMIT_AS", limits.memory)
    _limit("RLIMIT_CPU", limits.seconds)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_CORE", 0)


def _limit(name: str, most: int) -> None:
    number = getattr(resource, name, None)
    if resource is None or number is None:
        return
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    try:
        resource.setrlimit(number, (most, most))
    except (ValueError, OSError):  # macOS knows limits that it does not set
        return


def confine() -> None:
    """From now on this process opens no connection, starts no other process and opens no file for writing."""
    sys.addaudithook(_forbid)


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN):
        raise PermissionError("A file that is being read may not do that.")
    if event == "open" and isinstance(mode := arguments[1], str) and _WRITING & set(mode):
        raise PermissionError("A file that is being read may not write.")
