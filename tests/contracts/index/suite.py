"""Checks what every vector index must do. An implementation inherits `IndexContract` and says how it is opened."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from recollect.memory.ports.vector_index import Kind, Point, Query, SparseVector, VectorIndex, collection_name
from recollect.memory.values.errors import IndexUnavailable, PointTaken, is_outage
from recollect.memory.values.scope import Scope
from tests.contracts.index.channels import ChannelContract
from tests.contracts.index.erasing import ErasingContract
from tests.contracts.index.filtered import FilteredContract
from tests.contracts.index.points import (
    DIMENSION,
    MODEL,
    cosine,
    entry,
    ids_of,
    ordered,
    point,
    vector,
)

ADA = Scope("ada")


class IndexContract(ChannelContract, ErasingContract, FilteredContract):
    async def test_a_fresh_index_is_empty_and_serves(self, index: VectorIndex) -> None:
        await index.ping()
        assert await index.count() == 0
        assert await index.count(user_id="ada") == 0
        assert await index.ids() == []
        assert await index.fingerprints([str(uuid4())]) == {}
        assert await index.fingerprints([]) == {}
        assert await index.search(Query(ADA, vector(1), limit=5)) == []
        assert await index.other_collections() == []

    async def test_every_field_comes_back(self, index: VectorIndex) -> None:
        full = entry(name="Ada L.", message_id=str(uuid4()), role="assistant", position=7)
        bare = entry(thread_id=None, kind="document", role=None, id=str(uuid4()))
        bare = replace(bare, turn_id=None)
        fact = entry(kind="fact", fact_id="named-by-a-caller", id=str(uuid4()))
        sparse = SparseVector([3, 70_000], [0.5, 1.5])
        await index.upsert([Point(full, vector(1), context=vector(2), bm25=sparse), Point(bare, vector(3))])
        await index.upsert([Point(fact, vector(4))])
        assert await index.entries([fact.id]) == [fact]
        found = await index.search(Query(ADA, vector(1), limit=9, kinds=("episode", "document")))
        assert [match.entry for match in found] == [full, bare]

    async def test_similarity_is_the_raw_cosine_best_first(self, index: VectorIndex) -> None:
        points = [point(seed) for seed in range(30)]
        # Lengths other than 1 change nothing.
        points[7] = replace(points[7], dense=[number * 40 for number in points[7].dense])
        await index.upsert(points)
        asked = vector(99)
        found = await index.search(Query(ADA, asked, limit=30))
        expected = sorted(points, key=lambda item: -cosine(asked, item.dense))
        assert [match.entry.id for match in found] == [item.entry.id for item in expected]
        similarities = [match.similarity for match in found]
        np.testing.assert_allclose(similarities, [cosine(asked, item.dense) for item in expected], atol=1e-5)
        assert min(similarities) < 0 < max(similarities)

    async def test_the_same_and_the_opposite_vector_are_one_and_minus_one(self, index: VectorIndex) -> None:
        await index.upsert([point(1), replace(point(1), dense=[-number for number in vector(1)])])
        same, opposite = await index.search(Query(ADA, vector(1), limit=2))
        assert same.similarity == pytest.approx(1, abs=1e-6)
        assert opposite.similarity == pytest.approx(-1, abs=1e-6)
        assert -1 <= opposite.similarity < same.similarity <= 1

    async def test_a_point_without_words_is_stored_and_alike_to_nothing(self, index: VectorIndex) -> None:
        silent = replace(point(1), dense=[0.0] * DIMENSION)
        await index.upsert([silent])
        assert await index.count(user_id="ada") == 1
        for asked in (vector(1), [0.0] * DIMENSION):
            (found,) = await index.search(Query(ADA, asked, limit=1, with_vectors=True))
            assert found.similarity == 0
            assert list(found.dense or ()) == [0.0] * DIMENSION

    @pytest.mark.parametrize("wrong", [[1.0], [float("nan")] * DIMENSION, [float("inf")] * DIMENSION])
    async def test_a_vector_that_does_not_fit_is_refused_for_good(self, index: VectorIndex, wrong: list[float]) -> None:
        with pytest.raises(ValueError, match="vector"):
            await index.upsert([replace(point(1), dense=wrong)])
        with pytest.raises(ValueError, match="vector"):
            await index.search(Query(ADA, wrong, limit=1))
        assert await index.count() == 0

    async def test_points_are_counted_by_user_and_by_thread(self, index: VectorIndex) -> None:
        await index.upsert([point(1), point(2), point(3, thread_id="t2"), point(4, thread_id=None), point(5, "bob")])
        assert await index.count() == 5
        assert await index.count(user_id="ada") == 4
        assert await index.count(user_id="ada", thread_id="t1") == 2
        assert await index.count(user_id="bob", thread_id="t2") == 0

    async def test_upsert_replaces_and_repeats_without_effect(self, index: VectorIndex) -> None:
        old = point(1)
        await index.upsert([old])
        await index.upsert([old])
        assert await index.count() == 1
        new = Point(replace(old.entry, content="changed", thread_id="t2"), dense=vector(2))
        await index.upsert([new])
        (found,) = await index.search(Query(ADA, vector(2), limit=9))
        assert found.entry == new.entry
        assert found.similarity == pytest.approx(1, abs=1e-6)
        assert await index.search(Query(Scope("ada", "t1"), vector(1), limit=9)) == []

    async def test_a_point_is_never_written_over_another_users(self, index: VectorIndex) -> None:
        theirs = point(1, "bob", id=str(uuid4()))
        await index.upsert([theirs])
        planted = replace(point(2), entry=replace(point(2).entry, id=theirs.entry.id, content="planted"))
        with pytest.raises(PointTaken) as raised:
            await index.upsert([planted])
        assert not is_outage(raised.value)
        (found,) = await index.search(Query(Scope("bob"), vector(1), limit=9))
        assert found.entry == theirs.entry
        assert found.similarity == pytest.approx(1, abs=1e-6)
        assert await index.count(user_id="ada") == 0
        both = [planted, replace(theirs, entry=replace(theirs.entry, content="his own, written anew"))]
        with pytest.raises(PointTaken):
            await index.upsert(both)
        assert await index.users() == ["bob"]
        await index.upsert([both[1], point(3)])
        assert [entry.content for entry in await index.entries([theirs.entry.id])] == ["his own, written anew"]
        await index.remove(user_id="bob", ids=[theirs.entry.id])
        await index.upsert([planted])
        assert await index.users() == ["ada"]

    async def test_an_empty_upsert_does_nothing(self, index: VectorIndex) -> None:
        await index.upsert([])
        assert await index.count() == 0

    async def test_long_sequences_are_stored_whole(self, index: VectorIndex) -> None:
        points = [point(seed) for seed in range(300)]
        await index.upsert(points)
        assert await index.count() == 300
        assert set(await index.fingerprints([item.entry.id for item in points])) == ids_of(points)

    async def test_users_never_see_each_other(self, index: VectorIndex) -> None:
        turn = "the-same-turn"
        ada, bob = point(1, "ada", "t1", turn), point(1, "bob", "t1", turn)
        await index.upsert([ada, bob])
        for user, own in (("ada", ada), ("bob", bob)):
            for scope in (Scope(user), Scope(user, "t1")):
                found = await index.search(Query(scope, vector(1), limit=9))
                assert [match.entry for match in found] == [own.entry]
        assert await index.search(Query(Scope("bo"), vector(1), limit=9)) == []
        assert await index.search(Query(Scope("bob.x"), vector(1), limit=9)) == []

    async def test_a_thread_is_searched_alone_and_a_user_across_threads(self, index: VectorIndex) -> None:
        first, second, none = point(1, thread_id="t1"), point(2, thread_id="t2"), point(3, thread_id=None)
        await index.upsert([first, second, none])
        found = await index.search(Query(Scope("ada", "t2"), vector(1), limit=9))
        assert [match.entry for match in found] == [second.entry]
        assert len(await index.search(Query(ADA, vector(1), limit=9))) == 3

    async def test_kinds_filter(self, index: VectorIndex) -> None:
        kinds: tuple[Kind, ...] = ("episode", "fact", "summary", "document")
        await index.upsert([point(seed, kind=kind) for seed, kind in enumerate(kinds)])

        async def kinds_found(*asked: Kind) -> set[str]:
            found = await index.search(Query(ADA, vector(1), limit=9, kinds=asked))
            return {match.entry.kind for match in found}

        assert await kinds_found("fact") == {"fact"}
        assert await kinds_found("summary", "document") == {"summary", "document"}
        assert await kinds_found(*kinds) == set(kinds)
        assert await kinds_found() == set()
        (episode,) = await index.search(Query(ADA, vector(1), limit=9))
        assert episode.entry.kind == "episode"

    async def test_excluded_turns_never_come_back(self, index: VectorIndex) -> None:
        points = [point(seed, turn_id=f"turn-{seed}") for seed in range(5)]
        untied = Point(replace(entry(id=str(uuid4())), turn_id=None), dense=vector(6))
        await index.upsert([*points, untied])
        found = await index.search(Query(ADA, vector(0), limit=2, exclude_turns=("turn-0", "turn-3", "missing")))
        assert len(found) == 2
        found = await index.search(Query(ADA, vector(0), limit=9, exclude_turns=("turn-0", "turn-3", "missing")))
        assert {match.entry.turn_id for match in found} == {"turn-1", "turn-2", "turn-4", None}

    async def test_a_point_of_an_excluded_turn_that_is_stored_between_searches_never_comes(self, index: VectorIndex):
        query = Query(ADA, vector(0), limit=9, exclude_turns=("turn-0", "turn-3"))
        await index.upsert([point(seed, turn_id=f"turn-{seed}") for seed in range(2)])
        assert [match.entry.turn_id for match in await index.search(query)] == ["turn-1"]
        await index.upsert([point(3, turn_id="turn-3")])
        assert [match.entry.turn_id for match in await index.search(query)] == ["turn-1"]
        (ranked,) = await index.rank([query])
        assert len(ranked) == 1
        await index.remove(user_id="ada", ids=list(ranked))
        assert await index.search(query) == []

    async def test_limit_takes_the_best(self, index: VectorIndex) -> None:
        await index.upsert([point(seed) for seed in range(20)])
        everything = await index.search(Query(ADA, vector(50), limit=20))
        for limit in (1, 7):
            assert await index.search(Query(ADA, vector(50), limit=limit)) == everything[:limit]

    async def test_vectors_come_only_when_asked_for_and_keep_their_direction(self, index: VectorIndex) -> None:
        await index.upsert([Point(entry(), vector(1), context=vector(2))])
        (without,) = await index.search(Query(ADA, vector(3), limit=1))
        (with_it,) = await index.search(Query(ADA, vector(3), limit=1, with_vectors=True))
        assert without.dense is None
        assert with_it.dense is not None
        assert cosine(with_it.dense, vector(1)) == pytest.approx(1, abs=1e-6)
        assert np.linalg.norm(with_it.dense) == pytest.approx(1, abs=1e-5)

    async def test_fingerprints_tell_which_ids_have_a_point_and_what_it_was_made_from(self, index: VectorIndex) -> None:
        points = [replace(point(1), fingerprint="0123456789abcdef"), point(2, "bob")]
        await index.upsert(points)
        told = {points[0].entry.id: "0123456789abcdef", points[1].entry.id: None}
        assert await index.fingerprints([*ids_of(points), str(uuid4())]) == told
        assert await index.fingerprints([str(uuid4()) for _ in range(500)]) == {}
        await index.upsert([replace(points[0], fingerprint="f" * 16)])
        assert await index.fingerprints([points[0].entry.id]) == {points[0].entry.id: "f" * 16}

    async def test_entries_gives_back_what_the_points_say(self, index: VectorIndex) -> None:
        points = [point(1), point(2, "bob")]
        await index.upsert(points)
        found = await index.entries([*ids_of(points), str(uuid4())])
        assert {entry.id: entry for entry in found} == {item.entry.id: item.entry for item in points}
        assert await index.entries([]) == []

    async def test_what_was_read_is_read_anew_after_each_write(self, index: VectorIndex) -> None:
        one, few, many = point(1), Query(Scope("ada"), vector(1), limit=5), [point(seed) for seed in range(2, 30)]
        said = list[str]()

        async def look() -> None:
            (entry,) = await index.entries([one.entry.id]) or [None]
            (match,) = await index.search(replace(few, ids=[one.entry.id])) or [None]
            assert entry == (match.entry if match else None)
            said.append(entry.content if entry else "gone")

        for content in ("first", "second"):
            await index.upsert([replace(one, entry=replace(one.entry, content=content))])
            await look()
        await index.upsert([*many, replace(one, entry=replace(one.entry, content="third"))])
        await look()
        await index.remove(user_id="ada", ids=[one.entry.id])
        await look()
        await index.upsert([one])
        await look()
        await index.delete(Scope("ada"))
        await look()
        assert said == ["first", "second", "third", "gone", one.entry.content, "gone"]

    async def test_ids_pages_through_everything_in_order(self, index: VectorIndex) -> None:
        points = [point(seed, f"user-{seed % 3}") for seed in range(53)]
        await index.upsert(points)
        seen: list[str] = []
        while page := await index.ids(after=seen[-1] if seen else None, limit=10):
            assert len(page) <= 10
            seen += page
        assert set(seen) == ids_of(points)
        assert len(seen) == 53
        assert ordered(seen)
        assert await index.ids() == seen

    async def test_ids_goes_on_behind_an_id_that_is_gone(self, index: VectorIndex) -> None:
        await index.upsert([point(seed) for seed in range(10)])
        seen = await index.ids()
        await index.remove(user_id="ada", ids=[seen[3]])
        assert await index.ids(after=seen[3], limit=2) == seen[4:6]
        assert await index.ids(after=seen[-1]) == []

    async def test_remove_touches_only_the_named_points_of_the_user(self, index: VectorIndex) -> None:
        ada, other, bob = point(1), point(2), point(3, "bob")
        await index.upsert([ada, other, bob])
        await index.remove(user_id="ada", ids=[ada.entry.id, bob.entry.id, str(uuid4())])
        assert await index.ids() == sorted(ids_of([other, bob]))
        await index.remove(user_id="ada", ids=[])
        await index.remove(user_id="nobody", ids=[other.entry.id])
        assert await index.count() == 2

    async def test_delete_a_thread(self, index: VectorIndex) -> None:
        gone = [point(seed, thread_id="t1") for seed in range(70)]
        kept = [point(1, thread_id="t2"), point(2, thread_id=None), point(3, "bob", "t1")]
        await index.upsert([*gone, *kept])
        assert await index.delete(Scope("ada", "t1")) == 70
        assert await index.ids() == sorted(ids_of(kept))
        assert await index.delete(Scope("ada", "t1")) == 0

    async def test_delete_a_user(self, index: VectorIndex) -> None:
        gone = [point(1, thread_id="t1"), point(2, thread_id="t2"), point(3, thread_id=None, kind="fact")]
        kept = point(4, "bob", "t1")
        await index.upsert([*gone, kept])
        assert await index.delete(ADA) == 3
        assert await index.count(user_id="ada") == 0
        assert await index.fingerprints(list(ids_of(gone))) == {}
        assert await index.ids() == [kept.entry.id]
        assert await index.delete(Scope("nobody")) == 0
        await index.upsert(gone)
        assert await index.count(user_id="ada") == 3

    @pytest.mark.parametrize(
        "content",
        [
            "",
            "🦊 ünïcödé \u202e \u0000-free \n\t 中文",
            '"quotes" \'and\' \\ {"$set": {"a.b": 1}} page_content metadata.user_id',
            "x" * 1_000_000,
        ],
        ids=["empty", "unicode", "syntax", "megabyte"],
    )
    async def test_any_text_is_kept(self, index: VectorIndex, content: str) -> None:
        said = entry(content=content.replace("\u0000", ""), name="a.b$c'\"")
        await index.upsert([Point(said, vector(1))])
        (found,) = await index.search(Query(ADA, vector(1), limit=1))
        assert found.entry == said

    @pytest.mark.parametrize(
        "name",
        [
            "a.b",
            "user_id",
            "metadata.user_id",
            "-",
            "a@b.c",
            "1",
            "A" * 128,
            "..a",
            "a:b",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
        ],
    )
    async def test_ids_are_values_never_paths_or_patterns(self, index: VectorIndex, name: str) -> None:
        own = Point(entry(name, name, name), vector(1))
        await index.upsert([own, point(1, "a"), point(1, "a" * 128)])
        (found,) = await index.search(Query(Scope(name, name), vector(1), limit=9))
        assert found.entry == own.entry
        assert await index.search(Query(Scope(name), vector(1), limit=9, exclude_turns=(name,))) == []
        assert await index.count(user_id=name) == 1
        assert await index.delete(Scope(name, name)) == 1
        assert await index.count() == 2

    async def test_writers_and_readers_at_once(self, index: VectorIndex) -> None:
        mine = [point(seed) for seed in range(10)]
        await index.upsert(mine)

        async def write(writer: int) -> None:
            for step in range(10):
                await index.upsert([point(100 * writer + step + n, f"user-{writer}") for n in range(3)])
                await index.upsert([mine[step]])
                if step % 3 == 2:
                    await index.delete(Scope(f"user-{writer}"))

        async def read() -> None:
            for _ in range(15):
                found = await index.search(Query(ADA, vector(3), limit=50))
                assert {match.entry.id for match in found} == ids_of(mine)
                assert await index.count(user_id="ada") == 10

        await asyncio.gather(*(write(writer) for writer in range(4)), *(read() for _ in range(4)))
        assert await index.count() == 10 + 4 * 3

    async def test_reopening_keeps_everything(self, place: Any) -> None:
        points = [point(seed) for seed in range(5)]
        async with self.opened(place) as index:
            await index.upsert(points)
            await index.remove(user_id="ada", ids=[points[0].entry.id])
        async with self.opened(place) as index:
            assert await index.ids() == sorted(ids_of(points[1:]))
            found = await index.search(Query(ADA, vector(2), limit=9))
            assert found[0].entry == points[2].entry
            await index.upsert(points)
            assert await index.count() == 5

    async def test_two_embedders_live_side_by_side_and_never_mix(self, place: Any) -> None:
        async with self.opened(place) as small, self.opened(place, dimension=4) as large:
            await small.upsert([point(1)])
            await large.upsert([Point(entry(), vector(1, 4)), Point(entry(), vector(2, 4))])
            assert (await small.count(), await large.count()) == (1, 2)
            assert len(await small.search(Query(ADA, vector(1), limit=9))) == 1
            first = collection_name(self.base, model=MODEL, dimension=DIMENSION)
            second = collection_name(self.base, model=MODEL, dimension=4)
            assert await small.other_collections() == [second]
            assert await large.other_collections() == [first]
            await small.delete(ADA)
            assert await large.count() == 2

    async def test_a_closed_index_is_unavailable(self, place: Any) -> None:
        async with self.opened(place) as index:
            await index.upsert([point(1)])
        with pytest.raises(IndexUnavailable):
            await index.count()
