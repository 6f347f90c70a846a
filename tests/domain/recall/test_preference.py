"""The hits of a turn's own thread go before those of other threads, as long as they are near the best one."""

from datetime import UTC, datetime

from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.candidates.candidate import Candidate
from recollect.memory.recall.preference import behind
from recollect.memory.recall.ranking import Scored

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def scored(score: float, thread_id: str | None, *older: str) -> Scored:
    entry = Entry(f"{thread_id}-{score}", "ada", thread_id, None, "episode", "Tea.", NOW)
    repeated = [Entry(f"{thread}-older", "ada", thread, None, "episode", "Tea.", NOW) for thread in older]
    return Scored(Candidate(entry), score, older=repeated)


def test_hits_of_other_threads_are_put_behind() -> None:
    found = [scored(1.0, "there"), scored(0.95, "here"), scored(0.9, None), scored(0.9, "there", "here")]
    assert behind(found, "here", 0.1) == [-0.1, 0.0, 0.0, 0.0], "the user's own facts, and what both threads say, stay"


def test_a_hit_of_the_thread_that_is_far_from_the_best_goes_first_no_more() -> None:
    found = [scored(1.0, "there"), scored(0.85, "here"), scored(0.75, "there"), scored(0.7, "here")]
    assert behind(found, "here", 0.1) == [-0.1, 0.0, -0.1, -0.1]
    assert behind(found, "here", 0.5) == [-0.5, 0.0, -0.5, 0.0], "a greater margin reaches farther"


def test_nothing_is_put_behind_where_the_thread_says_nothing_of_it() -> None:
    assert behind([scored(1.0, "there"), scored(0.9, "there")], "here", 0.1) == [0.0, 0.0]
    assert behind([scored(1.0, "there"), scored(0.2, "here")], "here", 0.1) == [0.0, 0.0]
    assert behind([], "here", 0.1) == []
