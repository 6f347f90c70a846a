"""Turns what a filter means in terms into what stores and indexes can evaluate: terms that the user's items have.

Indexes find equal terms alone, and not every server that speaks MongoDB's protocol compares the items of a list one by
one. So a range becomes the list of the user's terms that lie in it; and a mark that no item of the user has gives no
reason to look at items.
"""

from recollect.memory.ports.filtering.filter_terms import FilterTerms
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import (
    ALL,
    MADE,
    NONE,
    CreatedBetween,
    Either,
    Every,
    HasTerm,
    Made,
    Narrow,
    TermBetween,
    TextBetween,
    TextIn,
    Without,
    any_of,
    every,
    without,
)
from recollect.memory.values.filtering.narrowing import ItemKind, Narrowing, narrowing
from recollect.memory.values.filtering.terms import is_mark, keys_term, text_term

MOST_TERMS = 50_000
"""How many of the user's terms in a range the index is asked for at most; else the items are looked at."""


class KnownTerms:
    """The terms of one user, as far as one search asks for them. `embedder` names the one whose points it searches."""

    def __init__(self, terms: FilterTerms, user_id: str, keys: FilterKeys, *, embedder: str | None = None) -> None:
        self._terms = terms
        self._embedder = embedder
        self._user_id = user_id
        self._keys = keys
        self._found: dict[tuple[str, str], list[str]] = {}

    @property
    def keys(self) -> FilterKeys:
        """The declared keys."""
        return self._keys

    async def meant(self, asked: Filter, kind: ItemKind) -> Narrowing:
        """Return what the filter means for stored items, with lists of terms in place of ranges.

        Raises:
            StoreUnavailable: the store cannot be reached.
        """
        return (await self._meant(asked, kind)).stored

    async def narrowed(self, asked: Filter, kind: ItemKind) -> tuple[Narrow, Narrow]:
        """Return which points surely fulfil the filter by their terms, and which stored items have to be looked at.

        Until the index holds terms of the present keys, and where it cannot evaluate the filter, no point does.

        Raises:
            StoreUnavailable: the store cannot be reached.
        """
        meant = await self._meant(asked, kind)
        terms = in_index(meant.surely)
        if terms is None or terms == NONE or not await self._is_filled():
            return NONE, meant.stored.perhaps
        made: Narrow = HasTerm((keys_term(self._keys),))
        return every(made, terms), any_of(without(MADE), meant.between)

    async def _meant(self, asked: Filter, kind: ItemKind) -> Narrowing:
        meant = narrowing(asked, self._keys, kind)
        surely = await self._known(meant.surely, unknown=NONE)
        return Narrowing(surely, await self._known(meant.perhaps, unknown=ALL), meant.is_whole)

    async def _is_filled(self) -> bool:
        filling = await self._terms.filling()
        if filling is None or not filling.is_done:
            return False
        return (filling.digest, filling.embedder) == (self._keys.digest, self._embedder)

    async def _known(self, narrow: Narrow, *, unknown: Narrow) -> Narrow:
        """Return the condition over terms that the user's items have; a range of too many becomes `unknown`."""
        match narrow:
            case HasTerm(terms):
                there = [term for term in terms if not is_mark(term) or await self._between(term, f"{term}\x01")]
                return HasTerm(tuple(there)) if there else NONE
            case TermBetween(low, high):
                found = await self._between(low, high)
                if len(found) > MOST_TERMS:
                    return unknown
                return HasTerm(tuple(found)) if found else NONE
            case Every(parts):
                return every(*[await self._known(part, unknown=unknown) for part in parts])
            case Either(parts):
                return any_of(*[await self._known(part, unknown=unknown) for part in parts])
            case Without(part):
                return without(await self._known(part, unknown=without(unknown)))
            case _:
                return narrow

    async def _between(self, low: str, high: str) -> list[str]:
        if (low, high) not in self._found:
            self._found[low, high] = await self._terms.between(self._user_id, low, high, limit=MOST_TERMS + 1)
        return self._found[low, high]


def in_index(narrow: Narrow) -> Narrow | None:
    """Return the condition in terms and times alone; None where it has a range that is no list of terms."""
    match narrow:
        case HasTerm() | CreatedBetween():
            return narrow
        case TextIn(field, texts):
            return HasTerm(tuple(text_term(field, text) for text in texts))
        case Every(parts) | Either(parts):
            said = [part for part in map(in_index, parts) if part is not None]
            if len(said) < len(parts):
                return None
            return every(*said) if isinstance(narrow, Every) else any_of(*said)
        case Without(part):
            said_not = in_index(part)
            return None if said_not is None else without(said_not)
        case TermBetween() | TextBetween() | Made():
            return None
