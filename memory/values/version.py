"""Versions: short digests by which an edit names the text that its writer was shown."""

from hashlib import blake2b

from recollect.memory.values.errors import VersionChanged


def version_of(*parts: object) -> str:
    """Return the version of what these parts say: equal parts have equal versions."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def check_version(expected: str | None, present: str) -> None:
    """Check that `present` is the version that the writer was shown; None expects no version.

    Raises:
        VersionChanged: it is another.
    """
    if expected not in {None, present}:
        raise VersionChanged
