"""`/api/memory`: notes of a person's, over HTTP against a real service."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.http.test_lists import pages
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.shapes import FACT, ISO_TIME, TEXT, check, fields, refused

MEMORY = {**FACT, "content": TEXT}


def write(running: Service, user: str, content: str, **more: Any) -> dict[str, Any]:
    answer = running.http.post("/api/memory", json={"user_id": user, "content": content, **more})
    assert answer.status_code == 201, answer.text
    return check(MEMORY, answer.json())


def listed(running: Service, user: str, **query: Any) -> list[str]:
    """Return the contents of a list, newest first."""
    items = running.get("/api/memory", user_id=user, **query)["items"]
    return [check(MEMORY, item)["content"] for item in items]


def found(running: Service, user: str, query: str) -> set[str]:
    body = {"user_id": user, "query": query, "kinds": ["fact"], "score_threshold": -1.0, "top_k": 50}
    return {hit["content"] for hit in running.http.post("/api/memory/search", json=body).json()["hits"]}


def test_a_memory_is_written_found_and_recalled(offline: Service, user: str) -> None:
    made = write(offline, user, "  The badge opens the north door.  ", tags=["work", " keys "], importance=0.9)
    assert made["content"] == made["statement"] == made["value"] == "The badge opens the north door."
    assert (made["key"], made["source"], made["scope"], made["tags"]) == (None, "manual", "user", ["work", "keys"])
    assert (made["importance"], made["pinned"], made["status"], made["turn_id"]) == (0.9, False, "active", None)
    assert ISO_TIME.fullmatch(made["created_at"])
    assert offline.get(f"/api/memory/{made['id']}", user_id=user) == made
    assert found(offline, user, "Which door does the badge open?") == {made["content"]}
    turn = offline.turn("Which door does the badge open?", user=user)
    assert [hit["content"] for hit in turn["memory"]["hits"]] == [made["content"]]
    pinned = write(offline, user, "Speaks Dutch.", pinned=True)
    assert pinned["pinned"] is True


def test_lists_are_newest_first_in_pages_and_by_tag(offline: Service, user: str) -> None:
    said = [f"Memory number {number}." for number in range(5)]
    for number, content in enumerate(said):
        write(offline, user, content, tags=["even"] if number % 2 == 0 else [])
    FactsOf(offline, user).put("name", value="Ada", tags=["even"])
    assert listed(offline, user) == said[::-1]
    for limit in (1, 2, 5):
        found = pages(offline, "/api/memory", user_id=user, limit=limit)
        assert [item["content"] for page in found for item in page["items"]] == said[::-1]
    assert listed(offline, user, tag="even") == said[::-2]
    assert listed(offline, user, tag="odd") == []
    assert listed(offline, f"{user}-other") == []


@pytest.mark.parametrize("cursor", ["x", "MTIz", "AAAA", "eCB5"])
def test_a_foreign_cursor_is_refused(offline: Service, user: str, cursor: str) -> None:
    assert fields(offline.http.get("/api/memory", params={"user_id": user, "cursor": cursor})) == ["cursor"]


def test_a_change_keeps_the_id_and_adds_to_the_history(offline: Service, user: str) -> None:
    made = write(offline, user, "The badge opens the north door.", tags=["work"])
    path, params = f"/api/memory/{made['id']}", {"user_id": user}
    answer = offline.http.patch(path, params=params, json={"content": "The badge opens both doors."})
    assert answer.status_code == 200, answer.text
    changed = check(MEMORY, answer.json())
    assert (changed["id"], changed["content"]) == (made["id"], "The badge opens both doors.")
    assert (changed["tags"], changed["created_at"]) == (made["tags"], made["created_at"])
    assert changed["updated_at"] > made["updated_at"]
    tagged = offline.http.patch(path, params=params, json={"tags": ["door"], "pinned": True}).json()
    assert (tagged["content"], tagged["tags"], tagged["pinned"]) == (changed["content"], ["door"], True)
    assert offline.http.patch(path, params=params, json={}).json() == tagged
    history = FactsOf(offline, user).history(made["id"])
    assert [version["statement"] for version in history] == [made["content"], changed["content"], changed["content"]]
    assert found(offline, user, "badge door") == {changed["content"]}
    assert listed(offline, user, tag="door") == [changed["content"]]


def test_a_forgotten_memory_is_gone(offline: Service, user: str) -> None:
    made = write(offline, user, "The secret is plum.")
    kept = write(offline, user, "The colour is green.")
    path, params = f"/api/memory/{made['id']}", {"user_id": user}
    answer = offline.http.delete(path, params=params)
    assert (answer.status_code, answer.content) == (204, b"")
    for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"content": "No."})):
        refused(offline.http.request(method, path, params=params, json=body), 404, "not_found")
    assert listed(offline, user) == [kept["content"]]
    assert found(offline, user, "secret plum") == {kept["content"]}
    assert "plum" not in offline.http.get(f"/api/users/{user}/facts/{made['id']}/history").text


def test_what_a_turn_has_taught_is_a_memory_too(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"I once met a badger.": [add("Met a badger.", key=None, evidence="met a badger")]})
    served.turn("I once met a badger.", user=user, wait_for_memory=True)
    (taught,) = served.get("/api/memory", user_id=user)["items"]
    assert (taught["source"], taught["content"]) == ("turn", "The user's note is Met a badger..")
    answer = served.http.patch(f"/api/memory/{taught['id']}", params={"user_id": user}, json={"content": "Met two."})
    assert (answer.json()["source"], answer.json()["id"]) == ("manual", taught["id"])


def test_facts_with_a_key_and_anothers_memories_do_not_exist_here(offline: Service, user: str) -> None:
    keyed = FactsOf(offline, user).put("name", value="Ada")
    made = write(offline, user, "The colour is green.")
    others = {"user_id": f"{user}-other"}
    for fact_id, params in ((keyed["id"], {"user_id": user}), (made["id"], others), ("never", {"user_id": user})):
        path = f"/api/memory/{fact_id}"
        refused(offline.http.get(path, params=params), 404, "not_found")
        refused(offline.http.patch(path, params=params, json={"content": "Mine."}), 404, "not_found")
        refused(offline.http.delete(path, params=params), 404, "not_found")
    assert FactsOf(offline, user).known() == {"name": "Ada"}
    assert listed(offline, user) == [made["content"]]


def test_wrong_requests_are_refused(offline: Service, user: str) -> None:
    made = write(offline, user, "The colour is green.")

    def post(**body: Any) -> list[str]:
        return fields(offline.http.post("/api/memory", json={"user_id": user, "content": "x", **body}))

    assert post(content=" \n ") == ["content"]
    assert post(content="x" * 2_001) == ["content"]
    assert post(content="a\x00b") == ["content"]
    assert post(content=None) == ["content"]
    assert post(tags=["x"] * 11) == ["tags"]
    assert post(tags=["x" * 65]) == ["tags"]
    assert post(tags=[1]) == ["tags.0"]
    assert post(importance=1.5) == ["importance"]
    assert post(colour="red") == ["colour"]
    assert post(user_id="no one") == ["user_id"]
    assert fields(offline.http.post("/api/memory", json={"content": "x"})) == ["user_id"]
    assert fields(offline.http.post("/api/memory", json={"user_id": user})) == ["content"]
    path, params = f"/api/memory/{made['id']}", {"user_id": user}
    assert fields(offline.http.patch(path, params=params, json={"content": ""})) == ["content"]
    assert fields(offline.http.patch(path, params=params, json={"user_id": user})) == ["user_id"]
    assert fields(offline.http.patch(path, json={"content": "x"})) == ["user_id"]
    assert fields(offline.http.get("/api/memory")) == ["user_id"]
    assert listed(offline, user) == ["The colour is green."]
    assert write(offline, user, "x" * 2_000)["value"] == "x" * 1_000


def test_what_is_known_already_is_confirmed(offline: Service, user: str) -> None:
    made = write(offline, user, "The badge opens the north door.", tags=["work"])
    body = {"user_id": user, "content": "  the BADGE opens\nthe north door!  "}
    answer = offline.http.post("/api/memory", json=body)
    assert answer.status_code == 200, answer.text
    again = check({**MEMORY, "known": (bool,)}, answer.json())
    assert again.pop("known") is True
    assert again["confirmed_at"] > made["confirmed_at"]
    assert {**again, "confirmed_at": made["confirmed_at"]} == made
    assert listed(offline, user) == [made["content"]]
    pinned = offline.http.post("/api/memory", json={**body, "pinned": True}).json()
    assert (pinned["id"], pinned["known"], pinned["pinned"], pinned["tags"]) == (made["id"], True, True, ["work"])
    assert listed(offline, user) == [made["content"]]


@pytest.mark.parametrize("other", ["It opens 2 doors.", "It is -1.5 cold.", "C# is fun.", "O- it is."])
def test_what_differs_in_a_sign_is_another_memory(offline: Service, user: str, other: str) -> None:
    write(offline, user, other.translate(str.maketrans({"2": "3", "-": None, "#": None})))
    write(offline, user, other)
    assert len(listed(offline, user)) == 2


def test_what_a_turn_has_taught_is_known(offline: Service, user: str) -> None:
    offline.turn("I live in Paris.", user=user, wait_for_memory=True)
    answer = offline.http.post("/api/memory", json={"user_id": user, "content": "the user lives in paris"})
    assert (answer.json()["known"], answer.json()["key"]) == (True, "location")
    assert listed(offline, user) == []


def test_what_was_forgotten_is_written_anew(offline: Service, user: str) -> None:
    made = write(offline, user, "Speaks Dutch.")
    assert offline.http.delete(f"/api/memory/{made['id']}", params={"user_id": user}).status_code == 204
    assert write(offline, user, "Speaks Dutch.")["id"] != made["id"]


def test_the_same_at_the_same_time_is_one_memory(offline: Service, user: str) -> None:
    body = {"user_id": user, "content": "Speaks Dutch."}
    with ThreadPoolExecutor(8, thread_name_prefix="noting") as noting:
        answers = [noting.submit(offline.http.post, "/api/memory", json=body) for _ in range(8)]
        ids = {answer.result().json()["id"] for answer in answers}
    assert len(ids) == 1
    assert listed(offline, user) == ["Speaks Dutch."]
