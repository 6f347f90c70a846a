from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.shapes import FACT, ISO_TIME, check, check_message


def pages(running: Service, path: str, **query: Any) -> list[dict[str, Any]]:
    """Return all pages of a list."""
    found = [running.get(path, **query)]
    while found[-1]["next_cursor"] is not None:
        found.append(running.get(path, **query, cursor=found[-1]["next_cursor"]))
        assert len(found) < 100
    return found


def test_messages_come_oldest_first_in_pages(offline: Service, user: str) -> None:
    said = [f"Message {number}." for number in range(5)]
    for text in said:
        offline.turn(text, user=user)
    (whole,) = pages(offline, "/api/threads/t1/messages", user_id=user)
    assert set(whole) == {"items", "next_cursor"}
    messages = [check_message(message) for message in whole["items"]]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 5
    assert [message["content"] for message in messages[::2]] == said
    assert len({message["id"] for message in messages}) == 10
    assert [messages[0]["turn_id"], messages[8]["turn_id"]] == [messages[1]["turn_id"], messages[9]["turn_id"]]
    times = [message["created_at"] for message in messages]
    assert times == sorted(times)
    for limit, sizes in ((1, [1] * 10), (3, [3, 3, 3, 1]), (5, [5, 5]), (10, [10]), (200, [10])):
        found = pages(offline, "/api/threads/t1/messages", user_id=user, limit=limit)
        assert [len(page["items"]) for page in found] == sizes
        assert [message for page in found for message in page["items"]] == messages


def test_a_thread_that_nobody_wrote_to_is_empty(offline: Service, user: str) -> None:
    assert offline.get("/api/threads/never/messages", user_id=user) == {"items": [], "next_cursor": None}


def test_another_user_does_not_see_the_thread(offline: Service, user: str) -> None:
    offline.turn("Hello.", user=user, thread="shared")
    assert offline.get("/api/threads/shared/messages", user_id=f"{user}-other")["items"] == []


def test_messages_as_text(offline: Service, user: str) -> None:
    reply = offline.turn("My name is Ada.", user=user)["reply"]
    answer = offline.http.get("/api/threads/t1/messages", params={"user_id": user, "format": "text"})
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == f"user: My name is Ada.\nassistant: {reply}"
    first = offline.http.get("/api/threads/t1/messages", params={"user_id": user, "format": "text", "limit": 1})
    assert first.text == "user: My name is Ada."
    cursor = first.headers["x-next-cursor"]
    rest = offline.http.get("/api/threads/t1/messages", params={"user_id": user, "format": "text", "cursor": cursor})
    assert rest.text == f"assistant: {reply}"
    assert "x-next-cursor" not in rest.headers


def test_facts_list_keyed_and_free_ones_with_the_whole_dict_on_every_page(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    said = [("city", "Oslo"), ("job", "nurse"), ("dog", "Rex"), (None, "cats")]
    message = "Oslo, nurse, Rex, cats."
    teach(model, {message: [add(value, key=key) for key, value in said]})
    turn = served.turn(message, user=user, wait_for_memory=True)
    assert turn["memory"]["update"]["status"] == "done"
    path = f"/api/users/{user}/facts"
    (whole,) = pages(served, path)
    known = {"city": "Oslo", "job": "nurse", "dog": "Rex"}
    assert set(whole) == {"items", "facts", "next_cursor"}
    assert whole["facts"] == known
    assert all(check(FACT, fact)["status"] == "active" for fact in whole["items"])
    assert {(fact["key"], fact["value"]) for fact in whole["items"]} == set(said)
    fact = next(fact for fact in whole["items"] if fact["key"] == "city")
    assert (fact["turn_id"], fact["source"], fact["scope"]) == (turn["turn_id"], "turn", "user")
    assert (fact["evidence"], fact["valid_to"], fact["replaces"], fact["pinned"]) == ("Oslo", None, None, False)
    assert ISO_TIME.fullmatch(fact["created_at"])
    for limit in (1, 2, 3):
        found = pages(served, path, limit=limit)
        assert all(page["facts"] == known for page in found)
        assert [fact for page in found for fact in page["items"]] == whole["items"]


def test_a_superseded_fact_leaves_the_list_and_is_named_by_its_successor(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    later = add("Bergen", key="city") | {"decision": "update"}
    teach(model, {"Oslo.": [add("Oslo", key="city")], "Bergen now.": [later]})
    served.turn("Oslo.", user=user, wait_for_memory=True)
    (old,) = served.get(f"/api/users/{user}/facts")["items"]
    update = served.turn("Bergen now.", user=user, wait_for_memory=True)["memory"]["update"]
    assert [(change["before"], change["after"]) for change in update["changes"]] == [("Oslo", "Bergen")]
    (new,) = served.get(f"/api/users/{user}/facts")["items"]
    assert (new["value"], new["replaces"]) == ("Bergen", old["id"])


@pytest.mark.parametrize("query", [{}, {"limit": "200"}])
def test_an_unknown_user_has_no_facts(offline: Service, user: str, query: dict[str, str]) -> None:
    assert offline.get(f"/api/users/{user}/facts", **query) == {"items": [], "facts": {}, "next_cursor": None}
