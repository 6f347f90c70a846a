"""Hashes of what users said, by which a message is found again when a client sends it once more. Pure."""

from hashlib import blake2b


def comparable(text: str) -> str:
    """Return `text` without differences of case and white space: clients trim what they keep."""
    return " ".join(text.casefold().split())


def said_hash(text: str) -> str:
    """Return the hash (16 hexadecimal digits) of the comparable text; who finds a message by it compares the texts.

    It is no secret: a store keeps it in the message's own record, with which it is erased.
    """
    return blake2b(comparable(text).encode("utf-8", "replace"), digest_size=8).hexdigest()
