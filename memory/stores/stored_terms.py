"""The terms that both document stores keep beside an item."""

from typing import NamedTuple

from recollect.memory.values.document import Document
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.terms import metadata_terms
from recollect.memory.values.turn import Message

_UNSAID = "+"


class StoredTerms(NamedTuple):
    """The terms of an item's metadata, and by which keys they were made.

    `made_by` is the keys' digest; with a plus sign behind it, no terms say what the item holds.
    """

    terms: list[str]
    made_by: str


def terms_of(stored: Message | Fact | Document, keys: FilterKeys) -> StoredTerms:
    """Return the terms to store beside an item; roles, names and the like have fields of their own."""
    if isinstance(stored, Message) and len(stored.spoken) > 1:
        return StoredTerms([], f"{keys.digest}{_UNSAID}")  # several messages in one record: each is looked at
    return StoredTerms(list(metadata_terms(stored.metadata, keys)), keys.digest)


def made_ends(keys: FilterKeys) -> tuple[str, str]:
    """Return the first and the last `made_by` of records whose terms were made with these keys."""
    return keys.digest, f"{keys.digest}{_UNSAID}"
