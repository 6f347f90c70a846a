"""Checks what a turn recalls and what it costs: window, search, scope, switching memory off, calls to the models."""

from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import add, chats_of, embeddings_of, extractions_of, teach
from tests.service.support.running import Service

EVERYTHING = {"window": 0, "top_k": 50, "score_threshold": -1}


def contents(turn: dict[str, Any]) -> list[str]:
    return [hit["content"] for hit in turn["memory"]["hits"]]


def prompt_of(model: FakeOpenAI, message: str) -> list[tuple[str, str]]:
    """Return the messages of the chat call that answered `message`."""
    (chat,) = chats_of(model, message)
    return [(item["role"], item["content"]) for item in chat["messages"]]


def settle(running: Service, user: str, *messages: str, thread: str = "t1") -> None:
    for message in messages:
        running.turn(message, user=user, thread=thread, wait_for_memory=True)


def test_one_chat_call_before_the_reply_and_one_after(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn(f"I am {user}.", user=user, wait_for_memory=True)
    assert len(chats_of(model, f"I am {user}.")) == 1
    assert len(extractions_of(model, f"I am {user}.")) == 1


def test_nothing_is_embedded_where_nothing_lies_beyond_the_window(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    for number in range(3):
        said = f"{user} says {number}."
        settle(served, user, said)
        (embedded,) = embeddings_of(model, said)  # its own index step, after the reply
        assert embedded[:2] == [said, "All right."]
    beyond = f"{user} says more."
    turn = served.turn(beyond, user=user, memory={"window": 2})
    assert embeddings_of(model, beyond)[0] == [beyond]
    served.settled(turn["turn_id"], user=user)  # so that its extraction takes no later test's answer


def test_notes_of_the_windows_own_turns_are_not_searched_for(served: Service, model: FakeOpenAI, user: str) -> None:
    told = f"I, {user}, adopted a parrot."
    statement = f"{user} adopted a parrot."
    model.decide([{"decision": "add", "key": None, "statement": statement, "evidence": told}])
    settle(served, user, told)
    asked = f"What did {user} adopt?"
    within = served.turn(asked, user=user, wait_for_memory=True)
    assert within["memory"]["hits"] == []
    assert all(len(texts) > 1 for texts in embeddings_of(model, asked))  # its own index step, after the reply
    elsewhere = served.turn(f"Which bird does {user} have?", user=user, thread="t2")
    assert statement in [hit["content"] for hit in elsewhere["memory"]["hits"]]


def test_the_window_counts_turns_and_comes_oldest_first(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, "First.", "Second.", "Third.")
    turn = served.turn("Fourth.", user=user, memory={"window": 2, "top_k": 0})
    assert turn["memory"]["window"] == 2
    spoken = prompt_of(model, "Fourth.")[1:]
    assert spoken == [
        ("user", "Second."),
        ("assistant", "All right."),
        ("user", "Third."),
        ("assistant", "All right."),
        ("user", "Fourth."),
    ]


def test_the_default_window_is_ten_turns(served: Service, model: FakeOpenAI, user: str) -> None:
    for number in range(12):
        served.turn(f"Turn {number}.", user=user, memory={"top_k": 0})
    assert served.turn("Last.", user=user)["memory"]["window"] == 10


def test_window_zero_shows_no_messages(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, "Earlier.")
    turn = served.turn("Now.", user=user, memory={"window": 0, "top_k": 0})
    assert turn["memory"]["window"] == 0
    assert [role for role, _ in prompt_of(model, "Now.")] == ["system", "user"]


def test_hits_are_never_in_the_window(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, *(f"I like jazz number {number}." for number in range(4)))
    turn = served.turn("What jazz do I like?", user=user, memory={**EVERYTHING, "window": 2})
    assert sorted(contents(turn)) == ["All right.", *(f"I like jazz number {n}." for n in (0, 1))]


def test_top_k_bounds_the_hits_and_zero_searches_not_at_all(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, *(f"I like jazz number {number}." for number in range(4)))
    two = served.turn("Jazz again?", user=user, memory={**EVERYTHING, "top_k": 2})
    assert len(two["memory"]["hits"]) == 2
    unsearched = f"Jazz, asks {user}?"
    none = served.turn(unsearched, user=user, memory={**EVERYTHING, "top_k": 0}, wait_for_memory=True)
    assert (none["memory"]["hits"], none["memory"]["degraded"]) == ([], [])
    (embedded,) = embeddings_of(model, unsearched)
    assert embedded[:2] == [unsearched, "All right."]
    assert unsearched in contents(served.turn("Jazz?", user=user, memory=EVERYTHING))


def test_the_threshold_acts_on_the_raw_similarity(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, "I like jazz.", "My car is red.")
    memory = {**EVERYTHING, "score_threshold": 0.8, "recency_weight": 1.0}
    turn = served.turn("I like jazz.", user=user, memory=memory)
    assert contents(turn) == ["I like jazz."]
    assert turn["memory"]["hits"][0]["score"] == pytest.approx(1.0, abs=0.01)  # pyright: ignore[reportUnknownMemberType]


def test_hits_are_ordered_by_their_score(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, "red", "red green", "red green blue")
    for options in ({}, {"recency_weight": 0.3}):
        hits = served.turn("red green blue", user=user, memory=EVERYTHING | options)["memory"]["hits"]
        scores = [hit["score"] for hit in hits]
        assert scores == sorted(scores, reverse=True)


def test_search_keeps_to_the_thread_unless_the_user_is_asked_for(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, "I like jazz here.", thread="here")
    settle(served, user, "I like jazz there.", thread="there")
    settle(served, f"{user}-other", "I like jazz elsewhere.", thread="here")
    narrow = served.turn("What jazz?", user=user, thread="here", memory={**EVERYTHING, "scope": "thread"})
    assert "I like jazz here." in contents(narrow)
    assert {hit["thread_id"] for hit in narrow["memory"]["hits"]} == {"here"}
    wide = served.turn("What jazz now?", user=user, thread="here", memory={**EVERYTHING, "scope": "user"})
    assert {"I like jazz here.", "I like jazz there."} < set(contents(wide))
    assert "I like jazz elsewhere." not in contents(wide)
    new = served.turn("What jazz in a new thread?", user=user, thread="new", memory={"scope": "user"})
    assert "I like jazz there." in contents(new)


def test_a_new_thread_finds_nothing_of_its_own(served: Service, model: FakeOpenAI, user: str) -> None:
    settle(served, user, "I like jazz.", thread="old")
    asked = f"What do I like, asks {user}?"
    narrow = {**EVERYTHING, "scope": "thread"}
    turn = served.turn(asked, user=user, thread="new", memory=narrow, wait_for_memory=True)
    assert turn["memory"]["hits"] == []
    assert [asked] not in embeddings_of(model, asked)


def test_memory_switched_off_stores_the_turn_and_nothing_else(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")]})
    settle(served, user, "I live in Oslo.")
    said = f"My job is {user}."
    off = served.turn(said, user=user, turn_id="off", memory={"enabled": False}, wait_for_memory=True)
    update: dict[str, Any] = {"status": "skipped", "reason": "disabled", "model": None, "changes": [], "refused": []}
    recalled: dict[str, Any] = {"window": 0, "facts": {}, "summary": None, "hits": [], "degraded": []}
    assert off["memory"] == {**recalled, "update": update}
    assert served.get("/api/turns/off", user_id=user) == off
    assert [role for role, _ in prompt_of(model, said)] == ["system", "user"]
    assert "Oslo" not in str(prompt_of(model, said))
    (chat,) = chats_of(model, said)
    assert not chat.get("tools")
    later = served.turn("And now?", user=user, memory={"window": 1}, wait_for_memory=True)
    assert later["memory"]["window"] == 1
    assert ("user", said) in [(item["role"], item["content"]) for item in model.chats[-1]["messages"]]
    # A user's updates go in the order of their turns: the later one is done, so this one was never owed.
    assert extractions_of(model, said) == embeddings_of(model, said) == []
    found = contents(served.turn(said, user=user, memory=EVERYTHING))
    assert "I live in Oslo." in found
    assert said not in found


def test_tools_are_offered_with_memory(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("Hello.", user=user)
    offered = [tool["function"]["name"] for tool in model.chats[-1]["tools"]]
    assert offered == ["search_memory", "remember_fact"]


def test_without_decisions_the_update_is_done_without_changes(served: Service, model: FakeOpenAI, user: str) -> None:
    update = served.turn("Hello from Oslo.", user=user, wait_for_memory=True)["memory"]["update"]
    assert update == {"status": "done", "reason": None, "model": "fake-chat", "changes": [], "refused": []}


def test_without_waiting_the_reply_goes_out_before_the_update(served: Service, model: FakeOpenAI, user: str) -> None:
    model.fail(500, times=-1, path="/embeddings")
    turn = served.turn("Hello from Oslo.", user=user)
    assert turn["memory"]["update"]["status"] == "pending"
    model.recover()
    assert served.settled(turn["turn_id"], user=user)["memory"]["update"]["status"] == "done"


def test_the_users_facts_hold_in_every_thread(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"Oslo, tax.": [add("Oslo", key="city"), add("tax", key="topic", scope="thread", importance=0.7)]})
    settle(served, user, "Oslo, tax.", thread="here")
    assert served.turn("A?", user=user, thread="here")["memory"]["facts"] == {"city": "Oslo", "topic": "tax"}
    assert served.turn("B?", user=user, thread="there")["memory"]["facts"] == {"city": "Oslo"}
