"""The terms that index an item for filters: one flat list of `slot:type:value`.

A term's text is printable and bounded: longer or stranger texts stand as digests. Of equal values the terms are equal,
and the terms of numbers and times sort as these do. Beside values there are marks, which say what the values do not:

* `other`: a value of a type that no operand of the key's type equals or precedes;
* `odd`: a value of the key's kind that has no term (2.5 under an integer key);
* `long`: more different values than are listed;
* `several`: at least two different values;
* `empty`: the key is there with an empty list.
"""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, cast

from recollect.memory.values.filtering.filter import Item, read_instant
from recollect.memory.values.filtering.keys import FilterKey, FilterKeys

Mark = Literal["other", "odd", "long", "several", "empty"]
TextField = Literal["role", "name", "source", "agent_id", "thread_id"]
TEXT_FIELDS: tuple[TextField, ...] = ("role", "name", "source", "agent_id", "thread_id")
"""The reserved names of which an item has a text, or nothing."""
MOST_LISTED = 32
"""How many different values of one list get terms."""
MOST_CHARACTERS = 64
"""The longest text that stands in a term as it is."""
DIGEST = "digest"
"""The type of terms whose value is a text's digest."""

_OFFSET = 2**63
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS = frozenset({"keyword", "datetime"})
_NUMBERS = frozenset({"integer", "float"})


def mark(slot: str, what: Mark) -> str:
    """Return the term of a mark."""
    return f"{slot}:mark:{what}"


def is_mark(term: str) -> bool:
    """Tell whether the term is a mark."""
    return term.split(":", 2)[1] == "mark"


def keys_term(keys: FilterKeys) -> str:
    """Return the term that says with which keys an item's terms were made."""
    return f"keys:{keys.digest}"


def metadata_terms(metadata: Mapping[str, Any], keys: FilterKeys) -> tuple[str, ...]:
    """Return the terms of the declared keys that the metadata has."""
    found = [key for key in keys.keys if key.name in metadata]
    return tuple(term for key in found for term in _terms(key, metadata[key.name]))


def item_terms(item: Item, keys: FilterKeys) -> tuple[str, ...]:
    """Return the terms of the item's metadata and texts, and the one that says with which keys they were made."""
    texts = ((field, cast("str | None", getattr(item, field))) for field in TEXT_FIELDS)
    own = [text_term(field, text) for field, text in texts if text is not None]
    return (keys_term(keys), *own, *metadata_terms(item.metadata, keys))


def text_term(slot: str, text: str) -> str:
    """Return the term of a text."""
    if len(text) <= MOST_CHARACTERS and text.isprintable():
        return f"{slot}:keyword:{text}"
    return f"{slot}:{DIGEST}:{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def equality_term(key: FilterKey, value: object) -> str | None:
    """Return the term that all values have that equal this one, and no others; None where none stands for it."""
    if key.type in _TEXTS:
        is_fit = isinstance(value, str) and (key.type == "keyword" or read_instant(value) is not None)
        return text_term(key.slot, cast("str", value)) if is_fit else None
    if key.type == "boolean":
        return f"{key.slot}:boolean:{str(value).lower()}" if isinstance(value, bool) else None
    number = _number(value)
    code = None if number is None else _integer_code(number) if key.type == "integer" else _float_code(number)
    return None if code is None else f"{key.slot}:{key.type}:{code}"


def time_term(key: FilterKey, time: datetime) -> str:
    """Return the term of a text that names this time; texts of one time in other words share it."""
    return f"{key.slot}:datetime:{_code((time - _BEGIN) // timedelta(microseconds=1))}"


def is_of_kind(key: FilterKey, value: object) -> bool:
    """Tell whether the value is a text, a number or a flag as those of the key are."""
    if key.type in _TEXTS:
        return isinstance(value, str)
    return isinstance(value, bool) if key.type == "boolean" else _number(value) is not None


def _terms(key: FilterKey, value: Any) -> Iterator[str]:
    """Yield the terms of one key's value: a list stands for its items."""
    found: dict[str, object] = {}
    for each in _flat(value):
        term = equality_term(key, each)
        found.setdefault(term or mark(key.slot, "odd" if is_of_kind(key, each) else "other"), each)
        if len(found) > MOST_LISTED:
            yield mark(key.slot, "long")
            return
    if not found:
        yield mark(key.slot, "empty")
    if len(found) > 1:
        yield mark(key.slot, "several")
    yield from found
    times = (read_instant(each) for each in found.values() if isinstance(each, str) and key.type in _TEXTS)
    yield from dict.fromkeys(time_term(key, time) for time in times if time is not None)


def _flat(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for each in cast("Sequence[object]", value):
            yield from _flat(each)
    else:
        yield value


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _integer_code(number: int | float) -> str | None:
    is_whole = isinstance(number, int) or number.is_integer()  # NaN and infinity are not
    return _code(int(number)) if is_whole and -_OFFSET <= number < _OFFSET else None


def _float_code(number: int | float) -> str | None:
    try:
        real = float(number)
    except OverflowError:
        return None
    if real != number or not math.isfinite(real):
        return None
    (bits,) = struct.unpack(">q", struct.pack(">d", real + 0.0))  # -0.0 + 0.0 is 0.0
    return _code(bits if bits >= 0 else -(bits + _OFFSET) - 1)


def _code(number: int) -> str:
    """Return a whole number of 64 bits as digits that sort as the numbers do."""
    return f"{number + _OFFSET:016x}"
