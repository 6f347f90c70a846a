"""Counts the embedding calls of a turn and the texts in them, as docs/benchmarks.md states them."""

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, until

BEYOND = {"window": 1, "top_k": 5}
"""A window that does not show the whole thread: the turn searches, which needs the vector of its message."""
STATEMENT = "The user adopted a parrot."


def asked(model: FakeOpenAI) -> list[list[str]]:
    return [body["input"] for body in model.embeddings]


def test_a_turn_embeds_its_message_before_the_reply_and_all_else_in_one_call(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    for said in ("I live by the sea.", "I like strong tea."):
        served.turn(said, user=user, wait_for_memory=True)
    model.requests.clear()
    message = "I adopted a parrot on Sunday."
    model.decide(
        [{"decision": "add", "key": None, "statement": STATEMENT, "evidence": "I adopted a parrot"}],
    )
    answer = served.turn(message, user=user, memory=BEYOND, wait_for_memory=True)
    assert answer["memory"]["update"]["status"] == "done"
    searched, owed = asked(model)
    assert searched == [message]
    assert sorted(owed) == sorted(
        ["All right.", STATEMENT, f"All right.\n{message}", f"{message}\nAll right."],
    )
    facts = served.get(f"/api/users/{user}/facts")["items"]
    assert [fact["statement"] for fact in facts] == [STATEMENT]
    found = served.http.post("/api/memory/search", json={"user_id": user, "query": "parrot", "kinds": ["fact"]})
    assert [hit["content"] for hit in found.json()["hits"]] == [STATEMENT]

    model.requests.clear()
    served.turn("Which tea goes with cake?", user=user, memory=BEYOND, wait_for_memory=True)
    assert [len(texts) for texts in asked(model)] == [1, 3]


def test_within_the_window_a_turn_embeds_in_one_call_after_the_reply(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    served.turn("I live by the sea.", user=user, wait_for_memory=True)
    assert [len(texts) for texts in asked(model)] == [3]


def test_a_slow_model_does_not_keep_messages_out_of_the_index(served: Service, model: FakeOpenAI, user: str) -> None:
    model.chat_seconds = 2.5
    turn = served.turn("I keep bees on the roof.", user=user)
    until(lambda: len(asked(model)) == 1, seconds=3)
    assert served.get(f"/api/turns/{turn['turn_id']}", user_id=user)["memory"]["update"]["status"] == "pending"
    served.settled(turn["turn_id"], user=user)
