"""Derives from a filter what it means in terms: a condition that stores and indexes can evaluate by themselves.

A narrowing is a pair of such conditions. Every item that fulfils `surely` fulfils the filter; an item that does not
fulfil `perhaps` does not fulfil it. What lies between has to be looked at, by `Filter.fulfilled`. Both are equal but
for items with marks ("a value that has no term") where the filter names declared keys and reserved names alone.
"""

import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Literal, cast

from recollect.memory.values.filtering.filter import (
    AllOf,
    AnyOf,
    Condition,
    Filter,
    Item,
    Not,
    Operator,
    Scalar,
    read_instant,
)
from recollect.memory.values.filtering.keys import FilterKey, FilterKeys
from recollect.memory.values.filtering.narrow import (
    ALL,
    LEAST_MS,
    MADE,
    MOST_MS,
    NONE,
    CreatedBetween,
    HasTerm,
    Narrow,
    TermBetween,
    TextBetween,
    TextIn,
    any_of,
    every,
    without,
)
from recollect.memory.values.filtering.terms import (
    DIGEST,
    TEXT_FIELDS,
    TextField,
    equality_term,
    is_of_kind,
    mark,
    time_term,
)
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import from_ms

ItemKind = Literal["episode", "fact", "document"]
"""The kinds of items that have terms."""
_FIELDS: dict[ItemKind, frozenset[TextField]] = {
    "episode": frozenset({"role", "name", "agent_id", "thread_id"}),
    "fact": frozenset({"source", "agent_id", "thread_id"}),
    "document": frozenset({"source", "agent_id"}),
}


@frozen
class Narrowing:
    """The pair that a filter means for items of one kind.

    `is_whole`: the filter names nothing but declared keys and reserved names.
    """

    surely: Narrow
    perhaps: Narrow
    is_whole: bool

    @property
    def between(self) -> Narrow:
        """Return the condition on the items that have to be looked at."""
        return NONE if self.perhaps == self.surely else every(self.perhaps, without(self.surely))

    @property
    def stored(self) -> "Narrowing":
        """Return the pair for stored items: those whose terms were made by other keys, or by none, are between."""
        return Narrowing(every(MADE, self.surely), any_of(without(MADE), self.perhaps), self.is_whole)


def narrowing(asked: Filter, keys: FilterKeys, kind: ItemKind) -> Narrowing:
    """Return what the filter means for items of this kind whose terms are made with these keys."""
    match asked:
        case Condition():
            return _condition(asked, keys, kind)
        case Not(part):
            one = narrowing(part, keys, kind)
            return Narrowing(without(one.perhaps), without(one.surely), one.is_whole)
        case AllOf(parts) | AnyOf(parts):
            each = [narrowing(part, keys, kind) for part in parts]
            join = every if isinstance(asked, AllOf) else any_of
            surely, perhaps = join(*(one.surely for one in each)), join(*(one.perhaps for one in each))
            return Narrowing(surely, perhaps, all(one.is_whole for one in each))


def _exactly(condition: Narrow) -> Narrowing:
    return Narrowing(condition, condition, is_whole=True)


_UNKNOWN = Narrowing(NONE, ALL, is_whole=False)


def _condition(asked: Condition, keys: FilterKeys, kind: ItemKind) -> Narrowing:
    if not asked.is_reserved:
        key = keys.key(asked.name)
        return _UNKNOWN if key is None else _declared(key, asked)
    if asked.name == "kind":
        return _exactly(ALL if asked.fulfilled(Item(kind, from_ms(0))) else NONE)
    if asked.name == "created_at":
        return _exactly(_created(asked))
    field = next(name for name in TEXT_FIELDS if name == asked.name)
    if field not in _FIELDS[kind]:
        return _exactly(ALL if asked.operator == "ne" else NONE)
    return _text(field, asked)


def _operands(asked: Condition) -> tuple[Scalar, ...]:
    return asked.operand if isinstance(asked.operand, tuple) else (asked.operand,)


def _text(field: TextField, asked: Condition) -> Narrowing:
    """Narrow by a reserved name of which an item has a text, or nothing, which fulfils `ne` alone."""
    texts = tuple(dict.fromkeys(one for one in _operands(asked) if isinstance(one, str)))
    match asked.operator:
        case "eq" | "in":
            return _exactly(TextIn(field, texts) if texts else NONE)
        case "ne":
            return _exactly(without(TextIn(field, texts)) if texts else ALL)
        case _ if not texts:
            return _exactly(NONE)
        case _ if read_instant(texts[0]) is not None:
            return Narrowing(NONE, ALL, is_whole=False)  # texts would have to be compared as times
        case _:
            low, high = _text_ends(asked.operator, texts[0])
            return _exactly(TextBetween(field, low or "", high))


def _created(asked: Condition) -> Narrow:
    """Narrow by the time: an item's is in whole milliseconds, an operand's need not be."""
    times = [time for one in _operands(asked) if isinstance(one, str) and (time := read_instant(one)) is not None]
    begin = from_ms(0)
    micros = [(time - begin) // timedelta(microseconds=1) for time in times]
    at = any_of(*(CreatedBetween(one // 1000, one // 1000 + 1) for one in micros if one % 1000 == 0))
    if asked.operator in {"eq", "in"}:
        return at
    if asked.operator == "ne":
        return without(at)
    first, following = -(-micros[0] // 1000), micros[0] // 1000 + 1
    match asked.operator:
        case "gte":
            return CreatedBetween(first, MOST_MS)
        case "gt":
            return CreatedBetween(following, MOST_MS)
        case "lte":
            return CreatedBetween(LEAST_MS, following)
        case _:
            return CreatedBetween(LEAST_MS, first)


def _declared(key: FilterKey, asked: Condition) -> Narrowing:
    operands = _operands(asked)
    terms = tuple(dict.fromkeys(filter(None, (equality_term(key, one) for one in operands))))
    # Values that a term stands for equal no others, so only operands without one need a look at such values.
    unsaid = {mark(key.slot, _mark_of(key, one)) for one in operands if equality_term(key, one) is None}
    match asked.operator:
        case "eq" | "in":
            maybe = HasTerm((*sorted(unsaid), mark(key.slot, "long")))
            surely = HasTerm(terms) if terms else NONE
            return Narrowing(surely, any_of(surely, maybe), is_whole=True)
        case "ne":
            return _differs(key, terms, unsaid)
        case _:
            return _ordered(key, asked.operator, operands[0])


def _mark_of(key: FilterKey, value: object) -> Literal["odd", "other"]:
    return "odd" if is_of_kind(key, value) else "other"


def _differs(key: FilterKey, terms: tuple[str, ...], unsaid: Iterable[str]) -> Narrowing:
    """Narrow by `ne`: an item fulfils it without the key, or with one value that is another one."""
    there = without(HasTerm((mark(key.slot, "empty"),)))
    several = HasTerm((mark(key.slot, "several"),))
    if terms:
        return _exactly(every(there, any_of(without(HasTerm(terms)), several)))
    equal = HasTerm(tuple(unsaid))  # those that the operand may equal
    return Narrowing(every(there, any_of(without(equal), several)), there, is_whole=True)


def _ordered(key: FilterKey, asked: Operator, operand: Scalar) -> Narrowing:
    """Narrow by a range. Values of another kind than the operand's do not fulfil it."""
    unsure: list[Narrow] = [HasTerm((mark(key.slot, "long"), mark(key.slot, _mark_of(key, operand))))]
    if not is_of_kind(key, operand):
        surely: Narrow = NONE
    elif isinstance(operand, str):
        time = read_instant(operand)
        if time is not None:
            surely = _beyond(f"{key.slot}:datetime:", asked, time_term(key, time))
        else:
            surely = _beyond(f"{key.slot}:keyword:", asked, f"{key.slot}:keyword:{operand}")
            unsure.append(TermBetween(f"{key.slot}:{DIGEST}:", f"{key.slot}:{DIGEST};"))
    else:
        surely = _numbers(key, asked, operand)
    return Narrowing(surely, any_of(surely, *unsure), is_whole=True)


def _numbers(key: FilterKey, asked: Operator, operand: Scalar) -> Narrow:
    """Narrow by a range of numbers. The value above an operand takes its place where no value equals it."""
    begin, bound = f"{key.slot}:{key.type}:", cast("int | float", operand)
    term = equality_term(key, bound)
    if term is not None:
        return _beyond(begin, asked, term)
    is_upward = asked in {"gt", "gte"}
    above = equality_term(key, math.ceil(bound) if key.type == "integer" else _float_above(bound))
    if above is not None:
        return _beyond(begin, "gte" if is_upward else "lt", above)
    # It lies outside of all values that have terms.
    return TermBetween(begin, _end(begin)) if (bound < 0) == is_upward else NONE


def _float_above(bound: int | float) -> float:
    """Return the least float above a number that no float equals."""
    try:
        near = float(bound)
    except OverflowError:
        return math.inf
    return near if near > bound else math.nextafter(near, math.inf)


def _beyond(begin: str, asked: Operator, term: str) -> Narrow:
    """Narrow by the terms that begin so and lie where `asked` says, seen from `term`."""
    low, high = _text_ends(asked, term)
    return TermBetween(low or begin, high or _end(begin))


def _text_ends(asked: Operator, text: str) -> tuple[str | None, str | None]:
    """Return the first text of a range, and the first one behind it: no stored text has NUL."""
    behind = f"{text}\x01"
    match asked:
        case "gte":
            return text, None
        case "gt":
            return behind, None
        case "lte":
            return None, behind
        case _:
            return None, text


def _end(begin: str) -> str:
    """Return the first text behind all that begin so: a colon ends a beginning, and a semicolon follows it."""
    return f"{begin[:-1]};"
