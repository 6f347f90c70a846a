"""Checks what every vector index must do with filters: it evaluates terms and times as filters mean them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from recollect.memory.ports.vector_index import Allowance, Entry, Point, Query, VectorIndex
from recollect.memory.recall.known_terms import in_index
from recollect.memory.values.filtering.filter import Item
from recollect.memory.values.filtering.narrow import Either, Every, HasTerm, Narrow, TermBetween, Without
from recollect.memory.values.filtering.narrowing import narrowing
from recollect.memory.values.filtering.reading import read_filter
from recollect.memory.values.filtering.terms import item_terms, keys_term
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import entry, vector
from tests.contracts.random_filters import KEYS, RandomFilters

ADA = Scope("ada")
NOTHING: frozenset[str] = frozenset()


def item_of(draw: RandomFilters) -> Item:
    return Item("episode", draw.time(), role="user", name=draw.name(), thread_id="t1", metadata=draw.metadata())


def labelled(draw: RandomFilters, **changes: Any) -> Entry:
    item = item_of(draw)
    return entry(created_at=item.created_at, item=item, **changes)


def point_of(made: Entry, seed: int = 1) -> Point:
    return Point(made, vector(seed))


async def found_by(index: VectorIndex, allowed: Allowance, user: Scope = ADA) -> set[str]:
    query = Query(user, vector(1), limit=500, allowed=allowed)
    (ranked,) = await index.rank([query])
    searched = {match.entry.id for match in await index.search(query)}
    assert searched == set(ranked)
    return searched


def listed(narrow: Narrow, known: Sequence[str]) -> Narrow:
    """Return the condition with lists of `known` terms in place of ranges."""
    match narrow:
        case TermBetween(low, high):
            return HasTerm(tuple(term for term in known if low <= term < high))
        case Every(parts):
            return Every(tuple(listed(part, known) for part in parts))
        case Either(parts):
            return Either(tuple(listed(part, known) for part in parts))
        case Without(part):
            return Without(listed(part, known))
        case _:
            return narrow


class FilteredContract:
    """Checks an index that is opened with `KEYS`; a base of `IndexContract`."""

    async def test_terms_and_times_are_evaluated_as_filters_mean_them(self, index: VectorIndex) -> None:
        draw = RandomFilters(6)
        entries = [labelled(draw) for _ in range(60)]
        await index.upsert([point_of(one, seed) for seed, one in enumerate(entries)])
        await index.upsert([point_of(labelled(draw, user_id="bob"))])
        known = sorted({term for one in entries if one.item for term in item_terms(one.item, KEYS)})
        compared = 0
        for _ in range(150):
            asked = read_filter(draw.filter())
            meant = narrowing(asked, KEYS, "episode")
            fits = {one.id for one in entries if one.item is not None and asked.fulfilled(one.item)}
            surely, perhaps = in_index(listed(meant.surely, known)), in_index(listed(meant.perhaps, known))
            if surely is None or perhaps is None:
                continue
            compared += 1
            least = await found_by(index, Allowance(NOTHING, surely))
            assert least <= fits <= await found_by(index, Allowance(NOTHING, perhaps)), asked
        assert compared > 100

    async def test_points_are_allowed_by_their_ids_or_their_terms(self, index: VectorIndex) -> None:
        draw = RandomFilters(7)
        one, two, three = (labelled(draw) for _ in range(3))
        labels = {one.id: "a", two.id: "b", three.id: "c"}
        items = {key: Item("episode", one.created_at, metadata={"k": label}) for key, label in labels.items()}
        made = [replace(each, item=items[each.id]) for each in (one, two, three)]
        await index.upsert([point_of(each) for each in made])
        by_terms = narrowing(read_filter({"k": "b"}), KEYS, "episode").surely
        assert await found_by(index, Allowance(frozenset({one.id}), by_terms)) == {one.id, two.id}
        assert await found_by(index, Allowance(frozenset({one.id}))) == {one.id}
        assert await found_by(index, Allowance(NOTHING)) == set()
        assert await found_by(index, Allowance(frozenset({one.id}), by_terms), Scope("bob")) == set()

    async def test_terms_are_written_to_points_that_have_others_and_vectors_stay(self, index: VectorIndex) -> None:
        old = [entry() for _ in range(3)]
        await index.upsert([point_of(each, seed) for seed, each in enumerate(old)])
        made: Narrow = HasTerm((keys_term(KEYS),))
        assert await found_by(index, Allowance(NOTHING, made)) == set()
        item = Item("episode", old[0].created_at, metadata={"k": "a"})
        new = [replace(each, item=item) for each in old]
        before = await index.search(Query(ADA, vector(1), limit=9, with_vectors=True))
        assert await index.retouch([*new, labelled(RandomFilters(8))]) == 3
        assert await index.retouch(new) == 0
        assert await index.count() == 3
        assert await index.search(Query(ADA, vector(1), limit=9, with_vectors=True)) == before
        fits = Allowance(NOTHING, narrowing(read_filter({"k": "a"}), KEYS, "episode").surely)
        assert await found_by(index, fits) == {each.id for each in old}
        assert await index.retouch([replace(new[0], item=replace(item, metadata={"k": "b"}))]) == 1
        assert await found_by(index, fits) == {each.id for each in old[1:]}
        # Points of one id belong to one user: another user's entry changes nothing.
        assert await index.retouch([replace(new[1], user_id="bob", item=Item("episode", item.created_at))]) >= 0
        assert await found_by(index, fits) == {each.id for each in old[1:]}

    async def test_terms_go_with_their_points_and_into_a_successor(self, index: VectorIndex) -> None:
        made = [labelled(RandomFilters(9)) for _ in range(2)]
        everything: Narrow = HasTerm((keys_term(KEYS),))
        async with index.rebuilding() as successor:
            await successor.points.upsert([point_of(each) for each in made])
            await index.upsert([point_of(each) for each in made])
            await successor.promote()
        assert await found_by(index, Allowance(NOTHING, everything)) == {each.id for each in made}
        assert await index.erase(ADA) == 2
        assert await found_by(index, Allowance(NOTHING, everything)) == set()
