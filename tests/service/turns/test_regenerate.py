"""Answering a thread's last turn anew: what is replaced, what stays, and who may."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.facts.test_batching import learning as learning_from_several
from tests.service.support.events import check_stream, data_of, names, read_events
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, chats_of, extractions_of, teach
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import learning, posting, texts
from tests.service.support.shapes import as_answered, check_turn, fields, refused

MESSAGE = "I live in Rome now, I like green, and my dog is gone."
_posting = ThreadPoolExecutor(8, thread_name_prefix="regenerating")
OLD, NEW = "The old pineapple answer.", "The new cucumber answer."


def ask_anew(running: Service, turn_id: str, user: str, body: Any = None) -> httpx.Response:
    return httpx.post(f"{running.url}/api/turns/{turn_id}/regenerate", params={"user_id": user}, json=body, timeout=60)


def anew(running: Service, turn_id: str, user: str, **body: Any) -> dict[str, Any]:
    """Return the turn with its new answer, which must come, and have been learned from."""
    answer = ask_anew(running, turn_id, user, {"wait_for_memory": True, **body})
    assert answer.status_code == 200, answer.text
    return check_turn(answer.json())


def found(running: Service, text: str, user: str) -> set[str]:
    """Return what a search finds of the user's messages and facts."""
    body = {"user_id": user, "query": text, "top_k": 50, "score_threshold": -1.0}
    return {hit["content"] for hit in running.http.post("/api/memory/search", json=body).json()["hits"]}


def remember(key: str, value: str, evidence: str) -> Any:
    return call("remember_fact", key=key, value=value, statement=f"The user's {key} is {value}.", evidence=evidence)


def changes(turn: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    return sorted((one["decision"], one["key"], one["after"]) for one in turn["memory"]["update"]["changes"])


def test_the_new_answer_stands_in_the_old_ones_place(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("Hello.", user=user, turn_id="first", wait_for_memory=True)
    model.script(OLD)
    old = served.turn("Tell me about fruit.", user=user, turn_id="last", metadata={"a": 1}, wait_for_memory=True)
    before = served.get("/api/threads/t1/messages", user_id=user)["items"]
    model.script(NEW)
    new = anew(served, "last", user)
    assert (old["reply"], new["reply"], new["turn_id"], new["thread_id"]) == (OLD, NEW, "last", "t1")
    assert as_answered(served.get("/api/turns/last", user_id=user)) == new
    after = served.get("/api/threads/t1/messages", user_id=user)["items"]
    assert after[:3] == before[:3]
    assert (after[3]["id"], after[3]["content"]) == (before[3]["id"], NEW)
    assert after[3]["created_at"] > before[3]["created_at"]
    again = served.turn("Tell me about fruit.", user=user, turn_id="last")
    assert again["reply"] == NEW
    (found,) = [found for found in served.get("/api/admin/doctor")["users"] if found["user_id"] == user]
    assert (found["missing"], found["orphaned"], found["wrong_fingerprint"], found["failed"]) == (0, 0, 0, 0)


def test_the_old_answer_is_neither_shown_nor_recalled(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("Hello there, fruit lover.", user=user, wait_for_memory=True)
    model.script(OLD)
    served.turn("Which pineapple answer?", user=user, turn_id="last", wait_for_memory=True)
    model.script(call("search_memory", query="the old pineapple answer"), NEW)
    options = {"window": 5, "top_k": 50, "score_threshold": -1.0, "scope": "user"}
    new = anew(served, "last", user, memory=options)
    assert [hit for hit in new["memory"]["hits"] if hit["turn_id"] == "last"] == []
    assert new["memory"]["window"] == 1
    for chat in chats_of(model, "Which pineapple answer?")[1:]:
        assert OLD not in str(chat["messages"])
    assert OLD not in found(served, "the old pineapple answer", user)
    assert NEW in found(served, "the new cucumber answer", user)
    assert OLD not in str(served.get("/api/turns/last", user_id=user))


def test_what_the_old_answer_taught_is_replaced(served: Service, model: FakeOpenAI, user: str) -> None:
    ada = FactsOf(served, user)
    first = "I live in Oslo and have a dog."
    teach(model, {first: [add("Oslo", key="city"), add("dog", key="pet")]})
    served.turn(first, user=user, wait_for_memory=True)
    taught = [
        add("Rome", key="city") | {"decision": "update"},
        {"decision": "delete", "key": "pet", "evidence": "my dog is gone"},
    ]
    teach(model, {MESSAGE: [*taught, add("green", key="shade")]})
    model.script(remember("hue", "green", "I like green"), OLD)
    old = served.turn(MESSAGE, user=user, turn_id="last", wait_for_memory=True)
    assert ada.known() == {"city": "Rome", "hue": "green", "shade": "green"}
    city = ada.one("city")["id"]

    teach(model, {MESSAGE: taught})
    model.script(remember("colour", "green", "I like green"), NEW)
    new = anew(served, "last", user)
    assert new["memory"]["facts"] == {}, "what this turn taught is not known while it is answered anew"
    assert ada.known() == {"city": "Rome", "colour": "green"}
    assert changes(old) != changes(new)
    assert changes(new) == [("add", "colour", "green"), ("delete", "pet", None), ("update", "city", "Rome")]
    assert ada.one("city")["id"] != city, "the fact of the old answer was taken back"
    assert len(ada.items()) == 2

    teach(model, {MESSAGE: []})
    anew(served, "last", user)
    assert ada.known() == {"city": "Oslo", "pet": "dog"}
    statements = {fact["statement"] for fact in ada.items()}
    assert {content for content in found(served, "city colour pet hue", user) if "user's" in content} == statements
    teach(model, {MESSAGE: [*taught, add("green", key="shade")]})
    assert changes(anew(served, "last", user)) == [
        ("add", "shade", "green"),
        ("delete", "pet", None),
        ("update", "city", "Rome"),
    ]
    undone = served.http.post("/api/turns/last/undo", params={"user_id": user})
    assert undone.status_code == 200, undone.text
    assert ada.known() == {"city": "Oslo", "pet": "dog"}
    assert len(extractions_of(model, MESSAGE)) == 4


def test_what_a_person_has_changed_or_forgotten_stays_so(served: Service, model: FakeOpenAI, user: str) -> None:
    ada = FactsOf(served, user)
    teach(model, {MESSAGE: [add("Rome", key="city"), add("green", key="shade"), add("dog", key="pet")]})
    served.turn(MESSAGE, user=user, turn_id="last", wait_for_memory=True)
    ada.put("city", value="Bergen")
    assert ada.ask("DELETE", f"/{ada.one('shade')['id']}").status_code == 204
    new = anew(served, "last", user)
    assert ada.known() == {"city": "Bergen", "pet": "dog"}
    refusals = {(one["key"], one["reason"]) for one in new["memory"]["update"]["refused"]}
    assert ("shade", "a person forgot it") in refusals
    learned = served.http.post("/api/turns/last/learn", params={"user_id": user})
    assert learned.status_code == 200, learned.text
    assert ada.known() == {"city": "Bergen", "pet": "dog"}


def test_a_stream_shows_the_new_answer_as_it_comes(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(OLD)
    served.turn("Tell me.", user=user, turn_id="last", wait_for_memory=True)
    model.script(NEW)
    body = {"stream": True, "wait_for_memory": True}
    params = {"user_id": user}
    with served.http.stream("POST", "/api/turns/last/regenerate", params=params, json=body) as answer:
        check_stream(answer)
        events = list(read_events(answer.iter_lines()))
    assert names(events)[:2] == ["turn", "memory"]
    assert names(events)[-3:] == ["message", "update", "done"]
    assert data_of(events, "turn") == {"turn_id": "last"}
    assert "".join(data["text"] for name, data in events if name == "token") == NEW
    assert data_of(events, "message")["reply"] == NEW
    assert data_of(events, "update")["status"] == "done"


def test_only_the_last_turn_of_the_users_own_thread(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("One.", user=user, turn_id="one")
    served.turn("Two.", user=user, turn_id="two")
    served.turn("Elsewhere.", user=user, thread="t2", turn_id="three")
    refused(ask_anew(served, "one", user), 409, "not_last_turn")
    refused(ask_anew(served, "one", user, {"stream": True}), 409, "not_last_turn")
    refused(ask_anew(served, "never", user), 404, "not_found")
    refused(ask_anew(served, "two", f"{user}-other"), 404, "not_found")
    assert anew(served, "two", user)["reply"] == "All right."
    assert anew(served, "three", user)["thread_id"] == "t2"
    assert texts(served, user=user)[-2:] == [("user", "Two."), ("assistant", "All right.")]


def test_wrong_bodies_are_refused(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("One.", user=user, turn_id="one")
    assert fields(ask_anew(served, "one", user, {"colour": "red"})) == ["colour"]
    assert fields(ask_anew(served, "one", user, {"stream": "yes"})) == ["stream"]
    assert fields(ask_anew(served, "one", user, {"memory": {"top_k": -1}})) == ["memory.top_k"]
    assert fields(ask_anew(served, "one", user, {"memory": {"enabled": False}})) == ["memory"]
    assert fields(served.http.post("/api/turns/one/regenerate")) == ["user_id"]


def test_a_turn_without_memory_stays_without(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {MESSAGE: [add("Rome", key="city")]})
    served.turn(MESSAGE, user=user, turn_id="last", memory={"enabled": False})
    new = anew(served, "last", user)
    assert (new["memory"]["update"]["status"], new["memory"]["update"]["reason"]) == ("skipped", "disabled")
    assert FactsOf(served, user).known() == {}
    assert found(served, MESSAGE, user) == set()


def test_an_unfinished_last_turn_is_run(served: Service, model: FakeOpenAI, user: str) -> None:
    model.fail(400, times=9, path="chat")
    body = {"user_id": user, "thread_id": "t1", "message": "Hello.", "turn_id": "open"}
    assert served.http.post("/api/agent", json=body).status_code == 502
    refused(ask_anew(served, "open", user), 502, "model_unavailable")
    model.recover()
    assert anew(served, "open", user)["reply"] == "All right."
    assert texts(served, user=user) == [("user", "Hello."), ("assistant", "All right.")]


def test_a_failing_model_leaves_the_old_answer(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {MESSAGE: [add("Rome", key="city")]})
    model.script(OLD)
    old = served.turn(MESSAGE, user=user, turn_id="last", wait_for_memory=True)
    model.fail(400, times=9, path="chat")
    assert refused(ask_anew(served, "last", user), 502, "model_unavailable")["turn_id"] == "last"
    model.recover()
    assert as_answered(served.get("/api/turns/last", user_id=user)) == old
    assert OLD in found(served, "the old pineapple answer", user)
    assert FactsOf(served, user).known() == {"city": "Rome"}


def test_an_archived_thread_is_open_again(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(OLD)
    served.turn("Tell me about fruit.", user=user, turn_id="last", wait_for_memory=True)
    model.script("They spoke of the old pineapple.")
    archived = served.http.post("/api/threads/t1/archive", params={"user_id": user}).json()
    assert (archived["archived"], archived["summary"]) == (True, "They spoke of the old pineapple.")
    model.script(NEW)
    new = anew(served, "last", user)
    assert new["memory"]["summary"] is None
    assert "They spoke" not in str(chats_of(model, "Tell me about fruit.")[-1]["messages"])
    shown = served.get("/api/threads/t1", user_id=user)
    assert (shown["archived"], shown["summary"]) == (False, None)


def test_two_requests_at_once_are_one_answer(served: Service, model: FakeOpenAI, user: str) -> None:
    served.turn("Tell me.", user=user, turn_id="last", wait_for_memory=True)
    model.script(NEW)
    asked = len(model.chats)
    model.hang()
    waiting = posting_anew(served, "last", user)
    until(lambda: len(model.chats) == asked + 1)
    path, said = f"/api/turns/last/regenerate?user_id={user}", {"stream": True}
    with served.http.stream("POST", path, json=said, timeout=60) as joining:
        lines = joining.iter_lines()
        assert next(lines) == "event: turn"  # the second one has joined
        model.release()
        assert any(line.startswith("data: ") and NEW in line for line in lines)
    assert waiting().json()["reply"] == NEW
    assert len(model.chats) == asked + 1


def test_a_new_turn_waits_for_the_new_answer(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(OLD)
    served.turn("Tell me.", user=user, turn_id="last", wait_for_memory=True)
    asked = len(model.chats)
    model.script(NEW)
    model.hang()
    answering = posting_anew(served, "last", user)
    until(lambda: len(model.chats) == asked + 1)
    following = posting(served, "And then?", user=user)
    model.release()
    assert answering().json()["reply"] == NEW
    assert following.result(60).json()["memory"]["window"] == 1
    assert NEW in str(chats_of(model, "And then?")[0]["messages"])
    assert OLD not in str(chats_of(model, "And then?")[0]["messages"])
    assert [content for _, content in texts(served, user=user)][:3] == ["Tell me.", NEW, "And then?"]


def test_a_turn_that_came_first_keeps_the_last_one_as_it_is(served: Service, model: FakeOpenAI, user: str) -> None:
    model.script(OLD)
    served.turn("Tell me.", user=user, turn_id="last", wait_for_memory=True)
    asked = len(model.chats)
    model.hang()
    following = posting(served, "And then?", user=user)
    until(lambda: len(model.chats) == asked + 1)
    answering = posting_anew(served, "last", user)
    model.release()
    assert following.result(60).status_code == 200
    refused(answering(), 409, "not_last_turn")
    assert texts(served, user=user)[1] == ("assistant", OLD)


def test_an_update_that_waits_for_other_turns_is_replaced(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url, LEARN_EVERY="2", LEARN_IDLE_SECONDS="0")) as running:
        fake.on_chat = learning_from_several
        fake.script(OLD, NEW)
        old = running.turn("my dog is Rex", turn_id="one", wait_for_memory=True)
        assert old["memory"]["update"]["status"] == "pending"
        new = anew(running, "one", "ada")
        assert (new["reply"], new["memory"]["update"]["status"]) == (NEW, "pending")
        running.turn("my city is Rome", turn_id="two", wait_for_memory=True)
        assert running.settled("one")["memory"]["update"]["status"] == "done"
        assert FactsOf(running, "ada").known() == {"dog": "Rex", "city": "Rome"}
        assert OLD not in str(fake.extractions)
        assert OLD not in found(running, "the old pineapple answer", "ada")


def test_an_outage_of_the_index_steps_model_is_no_hindrance(tmp_path: Path, fake: FakeOpenAI) -> None:
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed", MEMORY_WAIT_SECONDS="5")
    with service(tmp_path, **settings) as running:
        fake.on_chat = learning
        fake.script(OLD, NEW)
        running.turn("Hello.", turn_id="zero", wait_for_memory=True)
        fake.fail(503, times=-1, path="embeddings")
        running.turn("my dog is Rex", turn_id="one")
        until(lambda: FactsOf(running, "ada").known() == {"dog": "Rex"})
        answer = ask_anew(running, "one", "ada")
        assert answer.status_code == 200, answer.text
        fake.recover()
        assert running.settled("one")["memory"]["update"]["status"] == "done"
        assert FactsOf(running, "ada").known() == {"dog": "Rex"}
        assert running.get("/api/admin/doctor")["healthy"] is True


def posting_anew(running: Service, turn_id: str, user: str) -> Callable[[], httpx.Response]:
    """`ask_anew` in a thread of its own; what is returned waits for it."""
    future = _posting.submit(ask_anew, running, turn_id, user)
    return lambda: future.result(60)
