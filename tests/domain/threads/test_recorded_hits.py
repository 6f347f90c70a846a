from recollect.memory.threads.recorded_hits import MOST_CHARACTERS, bounded_result
from tests.contracts.store.suite.recorded_hits import hit


def test_a_record_keeps_so_much_of_each_hit() -> None:
    short, long = hit("a", content="x" * MOST_CHARACTERS), hit("b", content="y" * 9_000)
    result = {"model": "m", "memory": {"hits": [short, long]}}
    assert bounded_result({"model": "m", "memory": {"hits": [short]}})["memory"]["hits"] == [short]
    kept = bounded_result(result)["memory"]["hits"]
    assert [len(one["content"]) for one in kept] == [2_000, 2_000]
    assert len(long["content"]) == 9_000
    assert bounded_result({"model": "m"}) == {"model": "m"}
