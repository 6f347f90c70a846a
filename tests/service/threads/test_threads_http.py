import httpx
import pytest

from tests.service.http.test_lists import pages
from tests.service.support.running import Service
from tests.service.support.shapes import ISO_TIME, fields, refused

THREAD = {"thread_id", "title", "last_activity_at", "turns", "messages", "archived"}
WHOLE = THREAD | {"summary", "summary_by", "summary_status", "archived_at"}


def talk(running: Service, user: str, *threads: str) -> None:
    for number, thread in enumerate(threads):
        running.turn(f"Message {number}.", user=user, thread=thread, wait_for_memory=True)


def test_threads_are_listed_newest_first_in_pages(offline: Service, user: str) -> None:
    talk(offline, user, "a", "b", "c", "d", "a")
    (whole,) = pages(offline, "/api/threads", user_id=user)
    assert [thread["thread_id"] for thread in whole["items"]] == ["a", "d", "c", "b"]
    assert [(thread["turns"], thread["messages"]) for thread in whole["items"]] == [(2, 4), (1, 2), (1, 2), (1, 2)]
    for thread in whole["items"]:
        assert set(thread) == THREAD
        assert thread["archived"] is False
        assert ISO_TIME.fullmatch(thread["last_activity_at"])
    for limit in (1, 2, 3):
        found = pages(offline, "/api/threads", user_id=user, limit=limit)
        assert [thread for page in found for thread in page["items"]] == whole["items"]
    newest = offline.get("/api/threads/a/messages", user_id=user)["items"][-1]
    assert whole["items"][0]["last_activity_at"] == newest["created_at"]


def test_nobody_sees_anothers_threads(offline: Service, user: str) -> None:
    talk(offline, user, "mine")
    assert offline.get("/api/threads", user_id=f"{user}-other") == {"items": [], "next_cursor": None}
    answer = offline.http.get("/api/threads/mine", params={"user_id": f"{user}-other"})
    refused(answer, 404, "not_found")
    refused(offline.http.delete("/api/threads/mine", params={"user_id": f"{user}-other"}), 404, "not_found")
    assert offline.get("/api/threads/mine", user_id=user)["turns"] == 1


def test_one_thread_is_shown_whole(offline: Service, user: str) -> None:
    talk(offline, user, "t1", "t10", "t1")
    shown = offline.get("/api/threads/t1", user_id=user)
    assert set(shown) == WHOLE
    (listed,) = [item for item in offline.get("/api/threads", user_id=user)["items"] if item["thread_id"] == "t1"]
    assert {name: shown[name] for name in THREAD} == listed
    assert (shown["summary"], shown["summary_status"], shown["archived_at"]) == (None, None, None)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/threads/never"),
        ("PATCH", "/api/threads/never"),
        ("DELETE", "/api/threads/never"),
        ("POST", "/api/threads/never/archive"),
        ("GET", "/api/threads/never/summary"),
        ("PUT", "/api/threads/never/summary"),
    ],
)
def test_a_thread_that_nobody_wrote_to_is_not_found(offline: Service, user: str, method: str, path: str) -> None:
    body = {"PUT": {"summary": "x"}, "PATCH": {"title": "x"}}.get(method)
    answer = offline.http.request(method, path, params={"user_id": user}, json=body)
    refused(answer, 404, "not_found")
    answer = offline.http.request(method, path, json=body)
    assert fields(answer) == ["user_id"]
    answer = offline.http.request(method, path.replace("never", "no thread"), params={"user_id": user}, json=body)
    assert fields(answer) == ["thread_id"]


@pytest.mark.parametrize("cursor", ["x", "MTIz", "eCB5", "MSBhIGI", "OTk5OTk5OTk5OTk5OTk5OTk5IHQx", "MTIzIA"])
def test_a_foreign_cursor_is_refused(offline: Service, user: str, cursor: str) -> None:
    answer = offline.http.get("/api/threads", params={"user_id": user, "cursor": cursor})
    assert fields(answer) == ["cursor"]


def test_a_deleted_thread_is_gone_everywhere_and_the_users_facts_stay(offline: Service, user: str) -> None:
    turn = offline.turn("My name is Ada. I live in Bergen.", user=user, thread="gone", wait_for_memory=True)
    offline.turn("I like strong tea.", user=user, thread="kept", wait_for_memory=True)
    offline.http.post("/api/threads/gone/archive", params={"user_id": user})
    answer = offline.http.delete("/api/threads/gone", params={"user_id": user})
    assert (answer.status_code, answer.content) == (204, b"")
    refused(offline.http.get("/api/threads/gone", params={"user_id": user}), 404, "not_found")
    refused(offline.http.get(f"/api/turns/{turn['turn_id']}", params={"user_id": user}), 404, "not_found")
    assert offline.get("/api/threads/gone/messages", user_id=user)["items"] == []
    assert [thread["thread_id"] for thread in offline.get("/api/threads", user_id=user)["items"]] == ["kept"]
    known = offline.get(f"/api/users/{user}/facts")["facts"]
    assert known["name"] == "Ada"
    body = {"user_id": user, "query": "Ada Bergen", "kinds": ["episode", "summary"], "score_threshold": -1.0}
    hits = offline.http.post("/api/memory/search", json=body).json()["hits"]
    assert {hit["thread_id"] for hit in hits} == {"kept"}


def test_a_deleted_thread_may_be_begun_anew(offline: Service, user: str) -> None:
    talk(offline, user, "t1", "t1")
    offline.http.delete("/api/threads/t1", params={"user_id": user})
    talk(offline, user, "t1")
    shown = offline.get("/api/threads/t1", user_id=user)
    assert (shown["turns"], shown["messages"], shown["summary"], shown["archived"]) == (1, 2, None, False)


def retitle(running: Service, user: str, title: object) -> httpx.Response:
    return running.http.patch("/api/threads/t1", params={"user_id": user}, json={"title": title})


def test_a_thread_has_a_title_until_it_is_removed(offline: Service, user: str) -> None:
    talk(offline, user, "t1")
    before = offline.get("/api/threads/t1", user_id=user)
    answer = retitle(offline, user, "  Moving to Oslo \n")
    assert answer.status_code == 200, answer.text
    assert answer.json() == {**before, "title": "Moving to Oslo"}
    assert offline.get("/api/threads", user_id=user)["items"][0]["title"] == "Moving to Oslo"
    offline.http.put("/api/threads/t1/summary", params={"user_id": user}, json={"summary": "Ada moves."})
    archived = offline.http.post("/api/threads/t1/archive", params={"user_id": user}).json()
    assert (archived["title"], archived["archived"]) == ("Moving to Oslo", True)
    assert retitle(offline, user, "x" * 200).json()["title"] == "x" * 200
    assert retitle(offline, user, None).json() == {**archived, "title": None}


@pytest.mark.parametrize("title", ["", "  ", "x" * 201, "a\x00b", 1])
def test_a_wrong_title_is_refused(offline: Service, user: str, title: object) -> None:
    talk(offline, user, "t1")
    assert fields(retitle(offline, user, title)) == ["title"]
    assert offline.get("/api/threads/t1", user_id=user)["title"] is None


def test_a_title_must_be_said(offline: Service, user: str) -> None:
    path, params = "/api/threads/t1", {"user_id": user}
    assert fields(offline.http.patch(path, params=params, json={})) == ["title"]
    assert fields(offline.http.patch(path, params=params, json={"title": "x", "colour": "red"})) == ["colour"]


@pytest.mark.parametrize("where", ["query", "body", "both"])
def test_a_cleared_session_is_a_deleted_thread(offline: Service, user: str, where: str) -> None:
    offline.turn("My name is Ada.", user=user, thread="gone", wait_for_memory=True)
    talk(offline, user, "kept")
    named = {"user_id": user}
    params, body = (named if where != "body" else None), (named if where != "query" else None)
    answer = offline.http.post("/memory/clear/gone", params=params, json=body)
    assert (answer.status_code, answer.content) == (204, b"")
    refused(offline.http.post("/memory/clear/gone", params=params, json=body), 404, "not_found")
    assert [thread["thread_id"] for thread in offline.get("/api/threads", user_id=user)["items"]] == ["kept"]
    assert offline.get(f"/api/users/{user}/facts")["facts"] == {"name": "Ada"}


def test_a_session_is_cleared_for_one_user_who_is_named(offline: Service, user: str) -> None:
    talk(offline, user, "t1")
    assert fields(offline.http.post("/memory/clear/t1")) == ["user_id"]
    assert fields(offline.http.post("/memory/clear/t1", json={"colour": "red"})) == ["colour"]
    both = offline.http.post("/memory/clear/t1", params={"user_id": user}, json={"user_id": f"{user}-other"})
    assert fields(both) == ["user_id"]
    refused(offline.http.post("/memory/clear/t1", json={"user_id": f"{user}-other"}), 404, "not_found")
    assert offline.get("/api/threads/t1", user_id=user)["turns"] == 1
