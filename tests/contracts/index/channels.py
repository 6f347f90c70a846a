"""The contract of a vector index's channels, and of all that narrows a query; a base of `IndexContract`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from recollect.memory.ports.vector_index import Channel, Kind, Origin, Point, Query, SparseVector, Vector, VectorIndex
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, WHEN, cosine, point, vector
from tests.contracts.index.rebuilding import RebuildContract

ADA = Scope("ada")
Words = Mapping[int, float]
WORDS: list[Words] = [{7: 1.5, 9: 0.25}, {7: 0.5}, {9: 2.0, 0: 1.0}, {2**32 - 1: 3.0}, {7: 1.0, 2**31: 0.5, 9: 1.0}]
ASKED: Words = {9: 1.0, 7: 2.0, 2**31: 0.5, 123: 1.0}


def sparse(words: Words) -> SparseVector:
    return SparseVector(list(words), list(words.values()))


def spoken(seed: int, words: Words | None = None, user_id: str = "ada", *, thread_id: str = "t1") -> Point:
    made = point(seed, user_id, thread_id, f"turn-{seed}", created_at=WHEN + timedelta(hours=seed))
    return replace(made, context=vector(seed + 1_000), bm25=None if words is None else sparse(words))


def id_of(seed: int) -> str:
    return spoken(seed).entry.id


SEEDS = {id_of(seed): seed for seed in range(10)}


def passage(seed: int, document: str, *, user_id: str = "ada") -> Point:
    made = point(seed, user_id, None, f"turn-{seed}", kind="document", role=None, origin=Origin(document))
    return replace(made, entry=replace(made.entry, turn_id=None), bm25=sparse({9: 1.0 + seed}))


D1 = Origin("d1")


def of_kind(made: Point, kind: Kind) -> Point:
    return replace(made, entry=replace(made.entry, kind=kind))


def bm25_of(asked: Words, corpus: Sequence[Words]) -> list[float]:
    """Return the dot products with the weights asked for, each times ln(1 + (N - n + 0.5) / (n + 0.5))."""
    found = {word: sum(word in words for words in corpus) for word in asked}
    rarity = {word: math.log(1 + (len(corpus) - n + 0.5) / (n + 0.5)) for word, n in found.items()}
    return [sum(weight * rarity[word] * words.get(word, 0) for word, weight in asked.items()) for words in corpus]


def bm25(words: Words, limit: int = 99, scope: Scope = ADA) -> Query:
    return Query(scope, sparse(words), limit, channel="bm25")


async def ranked(index: VectorIndex, query: Query) -> dict[str, float]:
    (found,) = await index.rank([query])
    assert list(found.values()) == sorted(found.values(), reverse=True)
    return found


class ChannelContract(RebuildContract):
    async def test_each_channel_ranks_by_its_own_vector(self, index: VectorIndex) -> None:
        points = [spoken(seed, words) for seed, words in enumerate(WORDS)]
        await index.upsert(points)
        asked = vector(99)
        own: dict[Channel, list[Vector]] = {
            "dense": [item.dense for item in points],
            "context": [item.context or () for item in points],
        }
        for channel, vectors in own.items():
            query = Query(ADA, asked, 9, channel=channel)
            expected = {item.entry.id: cosine(asked, its) for item, its in zip(points, vectors, strict=True)}
            assert await ranked(index, query) == pytest.approx(expected, abs=1e-5)
            found = await index.search(replace(query, with_vectors=True))
            assert {match.entry.id: match.similarity for match in found} == pytest.approx(expected, abs=1e-5)
            assert all(cosine(match.dense or (), vector(SEEDS[match.entry.id])) > 0.999 for match in found)

    async def test_bm25_weighs_words_by_how_rare_the_user_makes_them(self, index: VectorIndex) -> None:
        await index.upsert([spoken(seed, words) for seed, words in enumerate(WORDS)])
        expected = dict(zip(SEEDS, bm25_of(ASKED, WORDS), strict=False))
        del expected[id_of(3)]  # none of the words
        assert await ranked(index, bm25(ASKED)) == pytest.approx(expected, rel=1e-5)
        best = max(expected, key=expected.__getitem__)
        assert list(await ranked(index, bm25(ASKED, limit=1))) == [best]

    async def test_all_that_the_user_has_counts_for_rarity_whatever_is_looked_for(self, index: VectorIndex) -> None:
        fact, elsewhere = of_kind(spoken(1, WORDS[1]), "fact"), spoken(2, WORDS[2], thread_id="t2")
        await index.upsert([spoken(0, WORDS[0]), fact, elsewhere, spoken(8), spoken(9, {})])
        scores = bm25_of(ASKED, WORDS[:3])  # those without words count for nothing
        assert await ranked(index, bm25(ASKED, scope=Scope("ada", "t1"))) == pytest.approx({id_of(0): scores[0]})
        both = {id_of(0): scores[0], id_of(2): scores[2]}
        assert await ranked(index, bm25(ASKED)) == pytest.approx(both)
        assert await ranked(index, replace(bm25(ASKED), ids=[id_of(2)])) == pytest.approx({id_of(2): scores[2]})

    async def test_other_users_move_no_score(self, index: VectorIndex) -> None:
        await index.upsert([spoken(seed, words) for seed, words in enumerate(WORDS)])
        queries = [bm25(ASKED), *(Query(ADA, vector(99), 9, channel=channel) for channel in ("dense", "context"))]
        before = await index.rank(queries)
        await index.upsert([spoken(seed, WORDS[seed % 5], f"user-{seed % 3}") for seed in range(500)])
        after = await index.rank(queries)
        assert [list(found) for found in after] == [list(found) for found in before]
        for found, was in zip(after, before, strict=True):
            assert found == pytest.approx(was, rel=1e-6)

    async def test_words_that_are_replaced_or_removed_no_longer_count(self, index: VectorIndex) -> None:
        await index.upsert([spoken(seed, words) for seed, words in enumerate(WORDS)])
        await index.remove(user_id="ada", ids=[id_of(0)])
        changed: Words = {11: 1.0}
        await index.upsert([spoken(1, changed), spoken(2)])
        expected = bm25_of(ASKED, [changed, *WORDS[3:]])
        assert await ranked(index, bm25(ASKED)) == pytest.approx({id_of(4): expected[2]})

    async def test_points_without_a_channel_never_come_in_it(self, index: VectorIndex) -> None:
        await index.upsert([replace(spoken(0), context=None), spoken(1, {7: 1.0})])
        assert set(await ranked(index, Query(ADA, vector(5), 9, channel="context"))) == {id_of(1)}
        assert set(await ranked(index, bm25({7: 1.0}))) == {id_of(1)}
        assert set(await ranked(index, Query(ADA, vector(5), 9))) == {id_of(0), id_of(1)}
        (found,) = await index.search(Query(ADA, vector(5), 9, channel="context"))
        assert found.entry.id == id_of(1)

    async def test_words_that_nobody_said_find_nothing(self, index: VectorIndex) -> None:
        assert await index.rank([bm25(ASKED), bm25({})]) == [{}, {}]
        await index.upsert([spoken(0, WORDS[0])])
        assert await index.rank([bm25({}), bm25({555: 1.0}), bm25(ASKED, scope=Scope("bob"))]) == [{}, {}, {}]

    async def test_a_batch_is_answered_in_its_order(self, index: VectorIndex) -> None:
        points = [spoken(seed, {seed: 1.0}) for seed in range(5)]
        await index.upsert(points)
        nothing = Query(ADA, vector(1), 9, kinds=())
        queries = [
            Query(ADA, vector(1), 1),
            bm25({2: 1.0}),
            nothing,
            Query(ADA, vector(1_003), 1, channel="context"),
            Query(Scope("ada", "t2"), vector(1), 9),
        ]
        assert [list(found) for found in await index.rank(queries)] == [[id_of(1)], [id_of(2)], [], [id_of(3)], []]
        assert await index.rank([]) == []
        assert await index.rank([nothing]) == [{}]

    async def test_passages_are_kept_to_documents(self, index: VectorIndex) -> None:
        points = [passage(seed, f"d{seed % 3}") for seed in range(6)]
        await index.upsert([*points, spoken(7, {9: 1.0}), passage(8, "d0", user_id="bob")])
        for query in (Query(ADA, vector(1), 9, ("document",)), replace(bm25({9: 1.0}), kinds=("document",))):
            assert set(await ranked(index, query)) == {item.entry.id for item in points}
            own = replace(query, documents=["d0", "d2", "nothing"])
            assert set(await ranked(index, own)) == {item.entry.id for item in points if item.entry.origin != D1}
            assert await index.rank([replace(query, documents=[])]) == [{}]
            assert set(await ranked(index, replace(own, ids=[points[2].entry.id, points[1].entry.id]))) == {
                points[2].entry.id
            }
        (found, *_) = await index.search(Query(ADA, vector(1), 9, ("document",), documents=["d1"]))
        assert found.entry.origin == D1

    async def test_what_narrows_a_query_combines(self, index: VectorIndex) -> None:
        points = [spoken(seed, {7: 1.0}, thread_id=f"t{seed % 2}") for seed in range(10)]
        points[4] = of_kind(points[4], "fact")
        await index.upsert(points)
        hours = Period(WHEN + timedelta(hours=2), WHEN + timedelta(hours=8))
        some = [id_of(seed) for seed in (0, 2, 3, 4, 6, 8)]
        dense = Query(ADA, vector(1), 99)
        for query in (dense, Query(ADA, vector(1), 99, channel="context"), bm25({7: 1.0})):

            async def found(query: Query) -> set[int]:
                return {SEEDS[item] for item in await ranked(index, query)}

            assert await found(replace(query, period=hours)) == {2, 3, 5, 6, 7}  # the end is not within
            assert await found(replace(query, ids=some)) == {0, 2, 3, 6, 8}
            assert await found(replace(query, ids=some, period=hours)) == {2, 3, 6}
            assert await found(replace(query, ids=some, period=hours, exclude_turns=("turn-3", "x"))) == {2, 6}
            narrowed = replace(query, ids=some, period=hours, kinds=("episode", "fact"), exclude_turns=("turn-6",))
            assert await found(narrowed) == {2, 3, 4}
            assert await found(replace(narrowed, scope=Scope("ada", "t1"))) == {3}
            assert await found(replace(narrowed, period=Period(WHEN, WHEN))) == set()
        assert [match.entry.id for match in await index.search(replace(dense, ids=some[:1]))] == some[:1]
        found_within = await index.search(replace(dense, period=hours))
        assert {match.entry.turn_id for match in found_within} == {"turn-2", "turn-3", "turn-5", "turn-6", "turn-7"}

    async def test_no_ids_find_nothing(self, index: VectorIndex) -> None:
        await index.upsert([spoken(0, {7: 1.0})])
        queries = [Query(ADA, vector(1), 9, ids=()), replace(bm25({7: 1.0}), ids=[])]
        assert await index.rank(queries) == [{}, {}]
        assert await index.search(queries[0]) == []
        assert await index.search(replace(queries[0], ids=[str(uuid4())])) == []

    async def test_ids_never_lead_to_another_user_or_thread(self, index: VectorIndex) -> None:
        bobs = spoken(1, {7: 1.0}, "bob")
        await index.upsert([spoken(0, {7: 1.0}), bobs])
        both = [id_of(0), bobs.entry.id]
        for scope, own in ((ADA, both[:1]), (Scope("bob"), both[1:]), (Scope("bob", "t2"), []), (Scope("bo"), [])):
            dense = Query(scope, vector(1), 9, ids=both)
            queries = [dense, replace(dense, channel="context"), replace(bm25({7: 1.0}, scope=scope), ids=both)]
            assert [list(found) for found in await index.rank(queries)] == [own] * 3
            assert [match.entry.id for match in await index.search(dense)] == own

    @pytest.mark.parametrize(
        "wrong",
        [
            SparseVector([1, 2], [1.0]),
            SparseVector([1], [1.0, 2.0]),
            SparseVector([1, 1], [1.0, 2.0]),
            SparseVector([-1], [1.0]),
            SparseVector([2**32], [1.0]),
            SparseVector([1], [float("nan")]),
            SparseVector([1], [float("inf")]),
        ],
        ids=["short", "long", "twice", "negative", "large", "nan", "infinity"],
    )
    async def test_words_that_do_not_fit_are_refused_for_good(self, index: VectorIndex, wrong: SparseVector) -> None:
        with pytest.raises(ValueError, match="sparse vector"):
            await index.upsert([replace(spoken(0), bm25=wrong)])
        with pytest.raises(ValueError, match="sparse vector"):
            await index.rank([Query(ADA, wrong, 1, channel="bm25")])
        assert await index.count() == 0

    async def test_a_vector_of_another_channel_is_refused_for_good(self, index: VectorIndex) -> None:
        for query in (
            Query(ADA, sparse({1: 1.0}), 1),
            Query(ADA, sparse({1: 1.0}), 1, channel="context"),
            Query(ADA, vector(1), 1, channel="bm25"),
            Query(ADA, [1.0], 1, channel="context"),
            Query(ADA, [float("nan")] * DIMENSION, 1, kinds=()),
        ):
            with pytest.raises(ValueError, match="vector"):
                await index.rank([query])
            with pytest.raises(ValueError, match="vector"):
                await index.search(query)
        with pytest.raises(ValueError, match="bm25"):
            await index.search(bm25({1: 1.0}))
        with pytest.raises(ValueError, match="bm25"):
            await index.search(bm25({}))

    async def test_a_successor_has_all_channels(self, index: VectorIndex) -> None:
        points = [spoken(seed, words) for seed, words in enumerate(WORDS)]
        await index.upsert(points)
        queries = [bm25(ASKED), *(Query(ADA, vector(99), 9, channel=channel) for channel in ("dense", "context"))]
        before = await index.rank(queries)
        async with index.rebuilding() as successor:
            await successor.points.upsert(points[:4])
            await index.upsert(points[4:])
            await successor.promote()
        for found, was in zip(await index.rank(queries), before, strict=True):
            assert list(found) == list(was)
            assert found == pytest.approx(was, rel=1e-5)
