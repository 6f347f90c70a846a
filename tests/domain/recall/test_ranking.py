import math
import random
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.ports.vector_index import Entry, Kind
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.query import PreparedQuery, prepare_query
from recollect.memory.recall.ranking import (
    Scored,
    blend,
    cosine_of_vectors,
    fuse,
    mmr,
    rank,
    recency,
    share_of_best,
    spread,
    thread_priors,
    within,
)
from recollect.memory.recall.signals import ASSISTANT, ASSISTANT_BY_WORDS, PEOPLE, PEOPLE_BY_WORDS, Signals, signals_for
from recollect.memory.values.period import Period

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
MAY = Period(datetime(2023, 5, 1, tzinfo=UTC), datetime(2023, 6, 1, tzinfo=UTC))
PARTS = {field.name for field in fields(Signals)} | {"fused", "time"}
RAW = {"dense", "context", "bm25", "fact"}
PLAIN = prepare_query("zebra")
NOTHING = Signals(**{field.name: 0.0 for field in fields(Signals)} | {"dense": 1.0})
"""Of all signals only the cosine counts."""


def entry(name: str, content: str = "text", *, thread: str | None = "t1", kind: Kind = "episode") -> Entry:
    return Entry(
        id=name, user_id="ada", thread_id=thread, turn_id=name, kind=kind, content=content, created_at=NOW, role="user"
    )


def made(name: str, dense: float, content: str = "text", *, thread: str | None = "t1") -> Candidate:
    return Candidate(entry(name, content, thread=thread), dense=dense)


def ranked(
    candidates: Sequence[Candidate], query: PreparedQuery = PLAIN, signals: Signals | None = NOTHING
) -> list[Scored]:
    return rank(candidates, query, knows_meaning=True, signals=signals)


def ids(scored: Sequence[Scored]) -> list[str]:
    return [one.candidate.entry.id for one in scored]


COSINES = st.floats(-1, 1, allow_nan=False)
CANDIDATES = st.lists(
    st.builds(
        Candidate,
        st.builds(
            Entry,
            id=st.uuids().map(str),
            user_id=st.just("ada"),
            thread_id=st.sampled_from([None, "t1", "t2"]),
            turn_id=st.sampled_from(["one", "two"]),
            kind=st.sampled_from(["episode", "episode", "fact", "summary"]),
            content=st.sampled_from(["", "Where?", "in May", "three dogs", "text " * 99]),
            created_at=st.integers(-40, 40).map(lambda days: MAY.begin + timedelta(days=days)),
            role=st.sampled_from(["user", "assistant", None]),
            name=st.sampled_from(["Ada", "Bob", None]),
            position=st.none() | st.integers(1, 6),
        ),
        dense=COSINES,
        context=st.none() | COSINES,
        bm25=st.none() | st.floats(0, 50),
        fact=st.none() | COSINES,
    ),
    max_size=12,
    unique_by=(
        lambda one: one.entry.id,
        # No two messages have one place in a thread.
        lambda one: one.entry.id if one.entry.position is None else (one.entry.thread_id, one.entry.position),
    ),
)
QUERIES = st.sampled_from(
    [
        prepare_query("zebra"),
        prepare_query("When did Ada move in May?", names=["Ada", "Bob"], period=MAY),
        prepare_query("How many books did you recommend?"),
        prepare_query("What books have both read?", period=MAY),
    ]
)


@given(CANDIDATES, QUERIES, st.booleans())
def test_every_candidate_is_ranked_once_and_explained(
    candidates: list[Candidate], query: PreparedQuery, knows_meaning: bool
) -> None:
    scored = rank(candidates, query, knows_meaning=knows_meaning)
    assert sorted(ids(scored)) == sorted(one.entry.id for one in candidates)
    assert [one.score for one in scored] == sorted((one.score for one in scored), reverse=True)
    for one in scored:
        assert set(one.scores) <= RAW | PARTS
        assert math.isclose(
            sum(value for name, value in one.scores.items() if name not in RAW), one.score, abs_tol=1e-9
        )
        assert one.scores["dense"] == one.candidate.dense == one.similarity


@given(CANDIDATES, QUERIES, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(
    candidates: list[Candidate], query: PreparedQuery, chance: random.Random
) -> None:
    mixed = list(candidates)
    chance.shuffle(mixed)
    first, second = ranked(candidates, query, None), ranked(mixed, query, None)
    assert {one.candidate.entry.id: round(one.score, 9) for one in first} == {
        one.candidate.entry.id: round(one.score, 9) for one in second
    }


@given(CANDIDATES, QUERIES, st.sampled_from(["dense", "context", "bm25"]), st.integers(0, 11))
def test_a_candidate_that_becomes_more_alike_never_falls(
    candidates: list[Candidate], query: PreparedQuery, channel: str, which: int
) -> None:
    loose = [one._replace(entry=replace(one.entry, thread_id=None)) for one in candidates[: which + 1]]
    if not loose:
        return
    chosen = loose[-1]
    best = {"dense": 1.0, "context": 1.0, "bm25": 60.0}[channel]
    if channel == "dense" and chosen.entry.kind == "fact":
        return  # its cosine is the facts' range as well
    raised = chosen._replace(**{channel: best})
    before = ids(ranked(loose, query, PEOPLE)).index(chosen.entry.id)
    assert ids(ranked([*loose[:-1], raised], query, PEOPLE)).index(chosen.entry.id) <= before


def test_a_perfect_match_scores_one_without_other_signals() -> None:
    bare = replace(PEOPLE, length=0.0, fact=0.0)
    best = [Candidate(entry(name), 0.9, 0.9, 12.0) for name in "abc"]
    worst = [Candidate(entry("far", thread="t2"), 0.1, 0.1, 0.0)]
    scored = ranked([*best, *worst], PLAIN, bare)
    assert [round(one.score, 9) for one in scored] == [1.0, 1.0, 1.0, 0.0]


def test_candidates_that_are_alike_come_by_id() -> None:
    candidates = [made(name, 0.5) for name in "cab"]
    assert ids(ranked(candidates)) == ["a", "b", "c"]
    assert ranked([]) == []


def test_the_one_who_is_asked_about_is_heard_first() -> None:
    said = [one._replace(entry=replace(one.entry, name=one.entry.id)) for one in (made("Ada", 0.5), made("Bob", 0.5))]
    query = prepare_query("What did Bob say?", names=["Ada", "Bob"])
    assert ids(ranked(said, query, replace(NOTHING, speaker=0.1))) == ["Bob", "Ada"]
    assert ids(ranked(said, PLAIN, replace(NOTHING, speaker=0.1))) == ["Ada", "Bob"]


def test_what_was_said_in_the_time_named_comes_first_and_in_the_week_after_second() -> None:
    times = {"late": MAY.end + timedelta(days=30), "after": MAY.end + timedelta(days=3), "in": MAY.begin}
    said = [Candidate(replace(entry(name), created_at=time), 0.5) for name, time in times.items()]
    query = replace(PLAIN, period=MAY)
    assert ids(ranked(said, query, replace(NOTHING, date=0.1))) == ["in", "after", "late"]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (MAY.begin - timedelta(seconds=1), 0.0),
        (MAY.begin, 1.0),
        (MAY.end - timedelta(seconds=1), 1.0),
        (MAY.end, 0.5),
        (MAY.end + timedelta(days=7), 0.0),
    ],
)
def test_a_period_holds_its_beginning_and_not_its_end(at: datetime, expected: float) -> None:
    assert within(MAY, at) == expected


def test_an_instant_holds_itself() -> None:
    assert within(Period(NOW, NOW), NOW) == 1.0
    assert within(Period(NOW, NOW), NOW - timedelta(microseconds=1)) == 0.0


def test_the_users_own_message_is_what_is_looked_for_unless_the_assistants_words_are_asked_for() -> None:
    user, assistant = made("z-user", 0.5), made("a-assistant", 0.5)
    said = [user, assistant._replace(entry=replace(assistant.entry, role="assistant"))]
    signals = replace(NOTHING, user=0.2)
    assert ids(ranked(said, prepare_query("Where did I swim?"), signals)) == ["z-user", "a-assistant"]
    assert ids(ranked(said, prepare_query("What did you recommend?"), signals)) == ["a-assistant", "z-user"]


def test_whoever_is_asked_about_counts_before_the_user() -> None:
    """Only one speaker is named, and it is not the user: the two boosts would cancel each other out."""
    user, other = made("a-user", 0.5), made("z-named", 0.5)
    said = [user, other._replace(entry=replace(other.entry, role="assistant", name="Caroline"))]
    query = prepare_query("What does Caroline paint?", names=["Caroline"])
    (first, _) = ranked(said, query, None)
    assert first.candidate.entry.id == "z-named"
    assert all("user" not in one.scores for one in ranked(said, query, None))
    elsewhere = ranked(said, prepare_query("What did I paint?", names=["Caroline"]), None)
    assert elsewhere[0].candidate.entry.id == "a-user"


def test_the_users_own_name_takes_nothing_from_the_user() -> None:
    user, other = made("z-user", 0.5), made("a-other", 0.5)
    said = [
        user._replace(entry=replace(user.entry, name="Ada")),
        other._replace(entry=replace(other.entry, role="assistant")),
    ]
    first, _ = ranked(said, prepare_query("What does Ada paint?", names=["Ada"]), None)
    assert (first.candidate.entry.id, "user" in first.scores, "speaker" in first.scores) == ("z-user", True, True)


def test_a_question_is_no_answer() -> None:
    said = [made("asks", 0.5, "Do you swim?"), made("says", 0.45, "I swim."), made("far", 0.1)]
    assert ids(ranked(said, PLAIN, replace(NOTHING, question=0.2)))[0] == "says"
    assert ids(ranked(said, PLAIN, NOTHING))[0] == "asks"


@pytest.mark.parametrize(("position", "gets"), [(2, True), (3, True), (4, False), (None, False)])
def test_an_answer_has_a_share_of_its_question(position: int | None, gets: bool) -> None:
    asks = Candidate(replace(entry("asks", "Do you swim?"), position=1), 0.9)
    answers = Candidate(replace(entry("answers", "Every day."), position=position), 0.2)
    scored = ranked([asks, answers, made("far", 0.1)], PLAIN, replace(NOTHING, answer=0.5))
    by_id = {one.candidate.entry.id: one.scores for one in scored}
    assert ("answer" in by_id["answers"]) == gets
    assert "answer" not in by_id["asks"]


def test_an_answer_in_another_thread_is_none() -> None:
    asks = Candidate(replace(entry("asks", "Do you swim?"), position=1), 0.9)
    other = Candidate(replace(entry("other", "Every day.", thread="t2"), position=2), 0.2)
    scored = ranked([asks, other, made("far", 0.1)], PLAIN, replace(NOTHING, answer=0.5))
    assert all("answer" not in one.scores for one in scored)


def test_when_asks_for_times() -> None:
    said = [made("a", 0.5, "I swam."), made("b", 0.5, "I swam last week."), made("c", 0.5, "I swam with three dogs.")]
    signals = replace(NOTHING, time_words=0.1)
    assert ids(ranked(said, prepare_query("When did I swim?"), signals)) == ["b", "a", "c"]
    assert ids(ranked(said, prepare_query("Who swam?"), signals)) == ["a", "b", "c"]


def test_a_thread_is_as_good_as_its_three_best() -> None:
    entries = [entry(str(number), thread="t1" if number < 4 else "t2") for number in range(5)]
    assert thread_priors(entries, [0.3, 0.9, 0.6, 0.1, 0.9]) == pytest.approx([0.6, 0.6, 0.6, 0.6, 0.3])


def test_what_is_no_message_of_a_thread_stands_for_itself() -> None:
    entries = [entry("fact", kind="fact"), entry("loose", thread=None), entry("message")]
    assert thread_priors(entries, [0.6, 0.5, 0.3]) == pytest.approx([0.6, 0.5, 0.1])


def test_several_things_lie_in_several_threads() -> None:
    crowd = [made(name, 0.6) for name in "abc"]
    said = [*crowd, made("alone", 0.7, thread="t2"), made("far", 0.1, thread="t3")]
    signals = replace(NOTHING, thread=0.6, thread_for_several=0.0)
    assert ids(ranked(said, prepare_query("Which book is it?"), signals))[0] == "a"
    assert ids(ranked(said, prepare_query("Which books are they?"), signals))[0] == "alone"


@given(st.lists(st.none() | COSINES, max_size=9))
def test_values_are_spread_from_nothing_to_one(values: list[float | None]) -> None:
    found = spread(values)
    there = [value for value in values if value is not None]
    assert len(found) == len(values)
    assert all(0 <= value <= 1 for value in found)
    assert all(value == 0 for raw, value in zip(values, found, strict=True) if raw is None)
    if there:
        assert found[values.index(max(there))] == 1


def test_the_lowest_may_lie_below_all_values() -> None:
    assert spread([0.4, 0.6, None], lowest=0.2) == pytest.approx([0.5, 1.0, 0.0])
    assert spread([0.4, 0.6], lowest=0.5) == pytest.approx([0.0, 1.0])


@given(st.lists(st.none() | st.floats(0, 90), max_size=9))
def test_shares_keep_proportions(values: list[float | None]) -> None:
    found = share_of_best(values)
    best = max((value for value in values if value is not None), default=0.0)
    assert [value * best for value in found] == pytest.approx([value or 0.0 for value in values])


def test_the_only_fact_is_no_match_for_being_the_only_one() -> None:
    candidates = [Candidate(entry("a"), 0.8), Candidate(entry("b"), 0.2, fact=0.3)]
    assert fuse(candidates, replace(NOTHING, dense=0.0, fact=1.0)) == pytest.approx([0.0, 1.0])
    close = [Candidate(entry("a"), 0.8, fact=0.3), Candidate(entry("b"), 0.2, fact=0.9)]
    assert fuse(close, replace(NOTHING, dense=0.0, fact=1.0)) == pytest.approx([1 / 7, 1.0])


def test_what_has_no_context_is_its_own() -> None:
    candidates = [Candidate(entry("a"), 0.8), Candidate(entry("b"), 0.2, 0.5), Candidate(entry("c"), 0.2, 0.2)]
    assert fuse(candidates, replace(NOTHING, dense=0.0, context=1.0)) == pytest.approx([1.0, 0.5, 0.0])


@pytest.mark.parametrize(
    ("names", "knows_meaning", "expected"),
    [
        (["Ada", "Bob", "Ada"], True, PEOPLE),
        (["Ada", "Bob", None, None], True, PEOPLE),
        (["Ada", "Bob", None, None, None], True, ASSISTANT),
        (["Ada", None], True, ASSISTANT),
        ([None, None], True, ASSISTANT),
        ([], True, ASSISTANT),
        (["Ada", "Bob"], False, PEOPLE_BY_WORDS),
        ([None], False, ASSISTANT_BY_WORDS),
    ],
)
def test_signals_depend_on_who_speaks(names: list[str | None], knows_meaning: bool, expected: Signals) -> None:
    candidates = [Candidate(replace(entry(str(place)), name=name)) for place, name in enumerate(names)]
    candidates.append(Candidate(replace(entry("fact", kind="fact"), name=None)))
    assert signals_for(candidates, knows_meaning=knows_meaning) == expected


def naive_mmr(relevance: Sequence[float], vectors: Sequence[Sequence[float]], limit: int, trade: float) -> list[int]:
    """Choose as the textbook says: argmax over the rest of λ·rel - (1-λ)·max over the chosen of sim."""
    chosen = list[int]()
    while len(chosen) < min(limit, len(vectors)):
        scores = {
            place: trade * relevance[place]
            - (1 - trade) * max((cosine_of_vectors(vectors[place], vectors[other]) for other in chosen), default=0.0)
            for place in range(len(vectors))
            if place not in chosen
        }
        chosen.append(min(scores, key=lambda place: (-scores[place], place)))
    return chosen


@pytest.mark.parametrize("seed", range(60))
def test_mmr_is_the_textbooks(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.randrange(0, 14)
    vectors = [[chance.choice([-1.0, 0.0, 0.5, 1.0, 2.0]) for _ in range(3)] for _ in range(count)]
    relevance = [chance.choice([-0.5, 0.0, 0.25, 0.5, 1.0]) for _ in range(count)]
    limit, trade = chance.randrange(0, 16), chance.choice([0.0, 0.25, 0.5, 0.75, 1.0])
    chosen = mmr(relevance, vectors, limit=limit, trade_off=trade)
    assert chosen == naive_mmr(relevance, vectors, limit, trade)
    assert len(set(chosen)) == len(chosen) == min(limit, count)


def test_mmr_at_one_is_relevance_alone() -> None:
    relevance = [0.1, 0.9, 0.5, 0.9]
    assert mmr(relevance, [[1.0, 0.0]] * 4, limit=4, trade_off=1.0) == [1, 3, 2, 0]


def test_mmr_prefers_variety() -> None:
    vectors = [[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]]
    assert mmr([1.0, 0.99, 0.5], vectors, limit=2, trade_off=0.5) == [0, 2]
    assert mmr([1.0, 0.99, 0.5], vectors, limit=2, trade_off=0.9) == [0, 1]


def test_an_opposite_is_worth_more_than_a_stranger() -> None:
    assert mmr([1.0, 0.5, 0.5], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], limit=2, trade_off=0.5) == [0, 2]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1.0, 0.0], [5.0, 0.0], 1.0),
        ([1.0, 0.0], [0.0, 3.0], 0.0),
        ([1.0, 1.0], [-2.0, -2.0], -1.0),
        ([0.0, 0.0], [1.0, 0.0], 0.0),
        ([], [], 0.0),
    ],
)
def test_cosine(left: list[float], right: list[float], expected: float) -> None:
    assert math.isclose(cosine_of_vectors(left, right), expected, abs_tol=1e-12)


@pytest.mark.parametrize(("days", "expected"), [(0, 1.0), (30, 0.5), (60, 0.25), (90, 0.125), (-5, 1.0)])
def test_recency_halves_every_thirty_days(days: float, expected: float) -> None:
    assert math.isclose(recency(NOW - timedelta(days=days), NOW), expected)


def test_recency_falls_with_age_and_stays_in_its_range() -> None:
    found = [recency(NOW - timedelta(days=days), NOW) for days in (0, 0.5, 1, 7, 365, 36_500)]
    assert found == sorted(found, reverse=True)
    assert all(0 <= fresh <= 1 for fresh in found)


@pytest.mark.parametrize(("weight", "expected"), [(0, 0.2), (1, 0.8), (0.5, 0.5), (0.25, 0.35)])
def test_a_score_blends_similarity_and_recency(weight: float, expected: float) -> None:
    assert math.isclose(blend(0.2, 0.8, weight), expected)
