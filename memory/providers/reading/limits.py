"""Limits the pages, characters, memory and time of the process that reads a file."""

from recollect.memory.values.frozen import frozen

try:
    import resource
except ImportError:  # Windows lacks it: only the time limit holds there
    resource = None

_LIMITS = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_CORE", "RLIMIT_NOFILE", "RLIMIT_NPROC")


class ForbiddenCall(Exception):
    """Why the file cannot be read, as the end of "it …"."""


@frozen
class ReadingLimits:
    """The limits of a document's pages and characters, of unpacked bytes, and of memory and seconds to read a file."""

    pages: int
    characters: int
    unpacked: int
    memory: int = 512_000_000
    seconds: int = 30

    def too_many_pages(self, pages: int) -> ForbiddenCall:
        """Return the refusal of so many `pages`."""
        return ForbiddenCall(f"has {pages} pages, more than {self.pages} (MAX_DOCUMENT_PAGES)")

    def too_long(self) -> ForbiddenCall:
        """Return the refusal of a text that is too long."""
        return ForbiddenCall(f"has more than {self.characters:,} characters (MAX_DOCUMENT_CHARACTERS)")

    def too_large_unpacked(self) -> ForbiddenCall:
        """Return the refusal of a file that unpacks to too much."""
        return ForbiddenCall(f"unpacks to more than {self.unpacked // 1_000_000} MB (MAX_UNPACKED_MB)")


def limit_resources(limits: ReadingLimits) -> None:
    """Limit this process's memory and time, and let it write no file."""
    _limit("RLIMIT_AS", limits.memory)
    _limit("RLIMIT_CPU", limits.seconds)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_CORE", 0)


def close_limits() -> None:
    """Forbid this process, from now on, to open files and to start processes.

    Raises:
        OSError: this system lacks one of these limits or of those of `limit_resources`.
    """
    _limit("RLIMIT_NOFILE", 0)
    _limit("RLIMIT_NPROC", 0)  # the kernel exempts root
    if resource is None or not all(map(_is_limited, _LIMITS)):
        raise OSError("This system lacks a limit.")


def _limit(name: str, most: int) -> None:
    number = getattr(resource, name, None)
    if resource is None or number is None:
        return
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    try:
        resource.setrlimit(number, (most, most))
    except (ValueError, OSError):  # macOS defines limits that it cannot set
        return


def _is_limited(name: str) -> bool:
    assert resource is not None
    number = getattr(resource, name, None)
    return number is not None and resource.getrlimit(number)[1] != resource.RLIM_INFINITY
