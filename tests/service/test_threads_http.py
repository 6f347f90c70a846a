import pytest

from tests.service.running import Service
from tests.service.shapes import ISO_TIME, fields, refused
from tests.service.test_lists import pages

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
        ("DELETE", "/api/threads/never"),
        ("POST", "/api/threads/never/archive"),
        ("GET", "/api/threads/never/summary"),
        ("PUT", "/api/threads/never/summary"),
    ],
)
def test_a_thread_that_nobody_wrote_to_is_not_found(offline: Service, user: str, method: str, path: str) -> None:
    body = {"summary": "x"} if method == "PUT" else None
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
