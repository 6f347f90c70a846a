"""The keys of metadata that MEMORY_FILTER_KEYS declares: stores and indexes keep terms of their values."""

import functools
from hashlib import blake2b
from typing import Literal, cast, get_args

from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.filtering.filter import RESERVED
from recollect.memory.values.filtering.reading import METADATA, MOST_KEY_CHARACTERS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.text import text_problem

KeyType = Literal["keyword", "integer", "float", "boolean", "datetime"]
MOST_KEYS = 16
SCHEME = 1
"""To be increased when the same item gets other terms: every item then gets its terms again."""

_TYPES: tuple[str, ...] = get_args(KeyType)
_SHOWN = 60


@frozen
class FilterKey:
    """A key of metadata, and the type of the values that are indexed under it.

    `slot` stands for both in terms: a digest, so that no key reaches a database, and so that terms of an earlier
    declaration are never taken for those of this one.
    """

    name: str
    type: KeyType

    @property
    def slot(self) -> str:
        """Return the 12 hexadecimal digits that begin its terms."""
        return _digest(f"{self.type}:{self.name}", 6)


@frozen
class FilterKeys:
    """The declared keys, in their order."""

    keys: tuple[FilterKey, ...] = ()

    def key(self, name: str) -> FilterKey | None:
        """Return the key of this name, or None where it is not declared."""
        return next((key for key in self.keys if key.name == name), None)

    @property
    def as_text(self) -> str:
        """Return the declaration as MEMORY_FILTER_KEYS has it, or "none"."""
        return ",".join(f"{key.name}:{key.type}" for key in self.keys) or "none"

    @property
    def digest(self) -> str:
        """Return what names these keys in any order, and the scheme of their terms, in 16 hexadecimal digits."""
        return _digest("/".join([str(SCHEME), *sorted(key.slot for key in self.keys)]), 8)


NO_KEYS = FilterKeys()


@functools.lru_cache(maxsize=64)
def read_filter_keys(text: str) -> FilterKeys:
    """Return the keys that a value of MEMORY_FILTER_KEYS declares, such as "project:keyword,priority:integer".

    Raises:
        ConfigurationError: an entry declares none, or there are too many; the message names the entry.
    """
    found: dict[str, FilterKey] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, type_ = (part.strip() for part in entry.rpartition(":"))
        if not colon or type_ not in _TYPES:
            raise _refused(entry, f"must be a key and one of the types {', '.join(_TYPES)}, such as project:keyword")
        if name in RESERVED:
            raise _refused(entry, f"names a reserved name, which needs no declaration; write {METADATA}{name}:{type_}")
        key = name.removeprefix(METADATA)
        if not 1 <= len(key) <= MOST_KEY_CHARACTERS or text_problem(key) is not None:
            raise _refused(entry, f"must begin with a key of 1 to {MOST_KEY_CHARACTERS} characters")
        if key in found:
            raise _refused(entry, "declares a key a second time")
        found[key] = FilterKey(key, cast("KeyType", type_))
        if len(found) > MOST_KEYS:
            raise _refused(entry, f"is one key too many; at most {MOST_KEYS} are indexed")
    return FilterKeys(tuple(found.values()))


def _refused(entry: str, problem: str) -> ConfigurationError:
    shown = entry.encode("utf-8", "replace").decode()[:_SHOWN]
    return ConfigurationError(f"MEMORY_FILTER_KEYS: {shown!r} {problem}.")


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(), digest_size=size).hexdigest()
