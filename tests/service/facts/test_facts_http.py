"""A person's verbs on facts, over HTTP against a real service."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.http.test_lists import pages
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.shapes import FACT, check, fields, refused

NEVER = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def ada(served: Service, user: str) -> FactsOf:
    return FactsOf(served, user)


def taught(ada: FactsOf, model: FakeOpenAI, message: str, *decisions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a turn that has taught this."""
    assert ada.user is not None
    teach(model, {message: decisions})
    turn = ada.running.turn(message, user=ada.user, wait_for_memory=True, **fields)
    assert turn["memory"]["update"]["status"] == "done", turn
    return turn


def test_a_fact_is_written_read_changed_and_forgotten(ada: FactsOf) -> None:
    made = ada.put("diet", value="vegan", tags=["food"], importance=0.8, pinned=True)
    assert (made["value"], made["statement"], made["source"], made["scope"], made["status"]) == (
        *("vegan", "diet: vegan", "manual"),
        *("user", "active"),
    )
    assert check(FACT, ada.running.get(f"{ada.path}/{made['id']}")) == made
    again = ada.put("diet", value="vegan")
    assert again == made
    changed = ada.write("PATCH", f"/{made['id']}", {"value": "vegetarian", "valid_to": "2100-05-01T00:00:00Z"})
    assert (changed["id"], changed["value"], changed["valid_to"], changed["tags"]) == (
        *(made["id"], "vegetarian"),
        *("2100-05-01T00:00:00.000Z", ["food"]),
    )
    assert ada.known() == {"diet": "vegetarian"}
    assert [(version["value"], version["ended"] and version["ended"]["by"]) for version in ada.history(made["id"])] == [
        ("vegan", "person"),
        ("vegetarian", None),
    ]
    forgotten = ada.ask("DELETE", f"/{made['id']}")
    assert (forgotten.status_code, forgotten.content) == (204, b"")
    assert ada.known() == {}
    assert ada.items() == []
    (tombstone,) = ada.history(made["id"])
    assert (tombstone["status"], tombstone["key"], tombstone["value"]) == ("forgotten", None, "")
    assert "veg" not in json.dumps([tombstone, ada.running.get(f"{ada.path}/{made['id']}")])
    assert ada.ask("DELETE", f"/{made['id']}").status_code == 204
    refused(ada.ask("PATCH", f"/{made['id']}", {"value": "x"}), 409, "fact_conflict")


def test_lists_filter_by_tag_scope_thread_and_time(ada: FactsOf) -> None:
    ada.put("diet", value="vegan", tags=["food"])
    ada.put("task", value="taxes", scope="thread", thread_id="t1")
    past = ada.put("city", value="Oslo", valid_from="2019-01-01", valid_to="2020-01-01T00:00:00+00:00")
    assert past["valid_from"] == "2019-01-01T00:00:00.000Z"
    assert ada.known() == {"diet": "vegan"}
    assert ada.known(thread_id="t1") == {"diet": "vegan", "task": "taxes"}
    assert [fact["key"] for fact in ada.items(tag="food")] == ["diet"]
    assert [fact["key"] for fact in ada.items(scope="thread")] == ["task"]
    assert [fact["key"] for fact in ada.items(scope="user", thread_id="t1")] == ["diet"]
    assert [fact["key"] for fact in ada.items(thread_id="t2")] == ["diet"]
    assert ada.known(as_of="2019-06-01T00:00:00Z") == {"city": "Oslo"}
    assert [fact["key"] for fact in ada.items(as_of="2019-06-01T00:00:00Z")] == ["city"]
    assert ada.known(as_of="2020-01-01T00:00:00Z") == {}
    first = ada.running.get(ada.path, limit=1, thread_id="t1")
    second = ada.running.get(ada.path, limit=1, thread_id="t1", cursor=first["next_cursor"])
    assert [first["items"][0]["key"], second["items"][0]["key"]] == ["diet", "task"]
    assert first["facts"] == second["facts"] == {"diet": "vegan", "task": "taxes"}
    assert second["next_cursor"] is None


def test_a_person_has_the_last_word(ada: FactsOf, model: FakeOpenAI) -> None:
    taught(ada, model, "I live in Oslo.", add("Oslo", key="city"))
    fact = ada.one("city")
    written = ada.put("city", value="Bergen")
    assert (written["id"], written["source"], written["evidence"], written["turn_id"]) == (
        *(fact["id"], "manual"),
        *(None, None),
    )
    turn = taught(ada, model, "I live in Rome.", add("Rome", key="city"))
    (no,) = turn["memory"]["update"]["refused"]
    assert (no["value"], no["reason"]) == ("Rome", "a person wrote or pinned the fact")
    assert ada.known() == {"city": "Bergen"}
    assert ada.running.turn("Where do I live?", user=ada.user or "")["memory"]["facts"] == {"city": "Bergen"}


def test_forgetting_takes_the_text_out_of_turns_too(ada: FactsOf, model: FakeOpenAI) -> None:
    user = ada.user or ""
    first = taught(ada, model, "My doctor says I have gout.", add("gout", key="illness", evidence="I have gout"))
    second = ada.running.turn("What do you know?", user=user, wait_for_memory=True)
    assert second["memory"]["facts"] == {"illness": "gout"}
    assert ada.ask("DELETE", f"/{ada.one('illness')['id']}").status_code == 204
    update = ada.running.get(f"/api/turns/{first['turn_id']}", user_id=user)["memory"]["update"]
    (change,) = update["changes"]
    assert {name: change[name] for name in ("key", "before", "after", "evidence", "reason")} == {
        **dict.fromkeys(("key", "before", "after")),
        **{"evidence": "", "reason": "forgotten"},
    }
    assert ada.running.get(f"/api/turns/{second['turn_id']}", user_id=user)["memory"]["facts"] == {}
    found = ada.running.http.post(
        "/api/memory/search", json={"user_id": user, "query": "The user's illness is gout.", "kinds": ["fact"]}
    )
    assert found.json()["hits"] == []


def test_history_tells_what_ended_each_version(ada: FactsOf, model: FakeOpenAI) -> None:
    taught(ada, model, "I live in Oslo.", add("Oslo", key="city"))
    later = taught(ada, model, "I live in Rome.", add("Rome", key="city") | {"decision": "update"})
    fact = ada.one("city")
    ada.write("PATCH", f"/{fact['id']}", {"value": "Bergen"})
    versions = ada.history(fact["id"])
    assert [(version["value"], version["ended"] and version["ended"]["by"]) for version in versions] == [
        ("Oslo", "turn"),
        ("Rome", "person"),
        ("Bergen", None),
    ]
    assert versions[0]["ended"]["turn_id"] == later["turn_id"]
    assert ada.history(versions[0]["id"]) == versions, "whichever of them is asked"


WRONG: list[tuple[str, Any]] = [
    ("value", {"value": ""}),
    ("value", {"value": 5}),
    ("value", {"value": None}),
    ("value", {"value": "x" * 1_001}),
    ("value", {"value": "a\x00b"}),
    ("statement", {"value": "v", "statement": "x" * 2_001}),
    ("tags", {"value": "v", "tags": ["x" * 65]}),
    ("tags", {"value": "v", "tags": "food"}),
    ("tags.0", {"value": "v", "tags": [1]}),
    ("importance", {"value": "v", "importance": 2}),
    ("importance", {"value": "v", "importance": "high"}),
    ("pinned", {"value": "v", "pinned": "yes"}),
    ("scope", {"value": "v", "scope": "world"}),
    ("scope", {"value": "v", "scope": "global"}),
    ("thread_id", {"value": "v", "scope": "thread"}),
    ("thread_id", {"value": "v", "thread_id": "t1"}),
    ("thread_id", {"value": "v", "scope": "thread", "thread_id": "a/b"}),
    ("valid_from", {"value": "v", "valid_from": "soon"}),
    ("valid_from", {"value": "v", "valid_from": 5}),
    ("valid_to", {"value": "v", "valid_from": "2026-02-02", "valid_to": "2026-02-01"}),
    ("valid_to", {"value": "v", "valid_to": "0001-01-01T00:00:00+14:00"}),
    ("key", {"value": "v", "key": "other"}),
    ("colour", {"value": "v", "colour": "red"}),
    ("body", []),
]


@pytest.mark.parametrize(("field", "body"), WRONG)
def test_wrong_bodies_are_refused_by_field(ada: FactsOf, field: str, body: Any) -> None:
    assert fields(ada.ask("PUT", "/by-key/diet", body)) == [field]
    made = ada.put("name", value="Ada")
    assert fields(ada.ask("PATCH", f"/{made['id']}", body)) == [field]
    assert ada.known() == {"name": "Ada"}


def test_wrong_keys_and_queries_are_refused(ada: FactsOf) -> None:
    for key in ("Diet", "1st", "a-b", "x" * 65):
        assert fields(ada.ask("PUT", f"/by-key/{key}", {"value": "v"})) == ["key"]
    assert fields(ada.ask("PUT", "/by-key/diet", {"pinned": True})) == ["value"]
    for query in ({"as_of": "soon"}, {"scope": "world"}, {"status": "done"}, {"thread_id": "a/b"}, {"cursor": "?"}):
        answer = ada.running.http.get(ada.path, params=query)
        assert fields(answer) == [next(iter(query))]


def test_another_users_fact_does_not_exist(ada: FactsOf) -> None:
    made = ada.put("diet", value="vegan")
    for other in (FactsOf(ada.running, f"{ada.user}-other"), FactsOf(ada.running, None)):
        for method, path, body in (
            ("GET", "", None),
            ("PATCH", "", {"value": "x"}),
            ("DELETE", "", None),
            ("GET", "/history", None),
            ("POST", "/approve", None),
            ("POST", "/reject", None),
        ):
            for fact_id in (made["id"], NEVER):
                refused(other.ask(method, f"/{fact_id}{path}", body), 404, "not_found")
    assert ada.known() == {"diet": "vegan"}


def test_puts_at_the_same_time_make_one_fact(ada: FactsOf) -> None:
    def put(number: int) -> httpx.Response:
        url = f"{ada.running.url}{ada.path}/by-key/diet"
        return httpx.put(url, json={"value": f"diet {number}"}, timeout=30)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(put, range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(ada.items()) == 1
    assert len(ada.history(ada.one("diet")["id"])) == 8


def test_a_put_against_learning_leaves_the_persons_fact(ada: FactsOf, model: FakeOpenAI) -> None:
    teach(model, {f"My key{number} is taught.": [add("taught", key=f"key{number}")] for number in range(5)})
    turn_ids: list[str] = []
    for number in range(5):
        turn_ids.append(ada.running.turn(f"My key{number} is taught.", user=ada.user or "")["turn_id"])
        ada.put(f"key{number}", value="written")
    for turn_id in turn_ids:
        ada.running.settled(turn_id, user=ada.user or "")
    assert ada.known() == {f"key{number}": "written" for number in range(5)}
    assert len(ada.items()) == 5


def test_global_facts_are_everyones(ada: FactsOf) -> None:
    everyone = FactsOf(ada.running, None)
    made = everyone.put("motto", value="be kind")
    try:
        assert made["scope"] == "global"
        assert everyone.known() == {"motto": "be kind"}
        assert ada.known() == {}
        assert ada.running.turn("Hello there.", user=ada.user or "")["memory"]["facts"] == {"motto": "be kind"}
        assert fields(everyone.ask("PUT", "/by-key/x", {"value": "v", "scope": "thread", "thread_id": "t"})) == [
            "scope"
        ]
        assert everyone.write("PATCH", f"/{made['id']}", {"pinned": True})["pinned"] is True
        assert len(everyone.history(made["id"])) == 2
    finally:
        assert everyone.ask("DELETE", f"/{made['id']}").status_code == 204
    assert everyone.known() == {}


def test_a_history_comes_in_pages(ada: FactsOf) -> None:
    made = ada.put("diet", value="vegan 0")
    for number in range(1, 7):
        ada.put("diet", value=f"vegan {number}")
    path = f"{ada.path}/{made['id']}/history"
    whole = ada.history(made["id"])
    assert [version["value"] for version in whole] == [f"vegan {number}" for number in range(7)]
    for limit in (1, 3, 7, 200):
        found = pages(ada.running, path, limit=limit)
        assert [version for page in found for version in page["items"]] == whole
        assert all(len(page["items"]) <= limit for page in found)
    for query in ({"limit": "0"}, {"limit": "201"}, {"limit": "x"}, {"cursor": "x"}, {"cursor": "LTE"}):
        assert fields(ada.running.http.get(path, params=query)) == list(query)


def test_an_edit_of_another_version_than_the_present_one_stores_nothing(ada: FactsOf) -> None:
    made = ada.put("city", value="Oslo")
    path = f"{ada.path}/{made['id']}"
    shown = ada.running.http.get(path)
    seen = {"If-Match": shown.headers["ETag"]}
    changed = ada.running.http.patch(path, json={"value": "Rome"}, headers=seen)
    assert changed.status_code == 200
    for method, place in (("PATCH", path), ("PUT", f"{ada.path}/by-key/city")):
        late = ada.running.http.request(method, place, json={"value": "Bergen"}, headers=seen)
        refused(late, 412, "version_changed")
    assert ada.known() == {"city": "Rome"}
    now = {"If-Match": changed.headers["ETag"]}
    assert ada.running.http.put(f"{ada.path}/by-key/city", json={"value": "Bergen"}, headers=now).status_code == 200
    assert [fact["value"] for fact in ada.items(text="berg", source="manual", keyed="true")] == ["Bergen"]
    assert ada.items(text="rome") == []
