from typing import Any

from recollect.graph.open_rounds import MOST_OPEN, OpenRounds
from recollect.memory.values.scope import Scope

Json = dict[str, Any]

ADA = Scope("ada", "t1")


def calling(*ids: str) -> Json:
    return {"role": "assistant", "content": "", "tool_calls": [{"id": call_id} for call_id in ids]}


def result(call_id: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "x"}


async def test_what_the_agent_did_comes_back_in_front_of_the_clients_results() -> None:
    rounds = OpenRounds()
    kept = [calling("own"), result("own"), calling("own2", "c1"), result("own2")]
    rounds.keep(ADA, frozenset({"c1"}), kept, [{"key": "city"}])
    messages, proposals = rounds.restored(ADA, [calling("c1"), result("c1"), calling("c2"), result("c2")])
    assert messages == [*kept, result("c1"), calling("c2"), result("c2")]
    assert proposals == [{"key": "city"}]
    rounds.keep(ADA, frozenset({"c2"}), [calling("own3", "c2"), result("own3")], [*proposals, {"key": "name"}])
    _, proposals = rounds.restored(ADA, [calling("c1"), result("c1"), calling("c2"), result("c2")])
    assert proposals == [{"key": "city"}, {"key": "name"}]


async def test_another_thread_user_or_call_gets_nothing_of_it() -> None:
    rounds = OpenRounds()
    rounds.keep(ADA, frozenset({"c1", "c2"}), [calling("own", "c1", "c2"), result("own")], [])
    for scope, ids in ((Scope("ada", "t2"), ("c1", "c2")), (Scope("bob", "t1"), ("c1", "c2")), (ADA, ("c1",))):
        brought = [calling(*ids), *map(result, ids)]
        assert rounds.restored(scope, brought) == (brought, [])
    assert rounds.restored(ADA, []) == ([], [])


async def test_it_is_bounded_and_can_be_forgotten() -> None:
    rounds = OpenRounds()
    for number in range(MOST_OPEN + 1):
        rounds.keep(ADA, frozenset({f"c{number}"}), [calling("own"), result("own")], [])
    rounds.keep(Scope("bob"), frozenset({"c"}), [calling("own"), result("own")], [])
    assert rounds.restored(ADA, [calling("c1")]) == ([calling("c1")], [])
    assert (rounds.count("ada"), rounds.count("bob")) == (MOST_OPEN - 1, 1)
    rounds.keep(Scope("ada", "t2"), frozenset({"c"}), [calling("own"), result("own")], [])
    rounds.forget(Scope("ada", "t2"))
    assert (rounds.count("ada"), rounds.count("bob")) == (MOST_OPEN - 2, 1)
    rounds.forget(Scope("ada"))
    assert (rounds.count("ada"), rounds.count("bob")) == (0, 1)
