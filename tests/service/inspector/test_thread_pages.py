"""The pages of threads, and a person's acts on them, without JavaScript."""

import re
from collections.abc import Iterator

import pytest

from tests.service.support.running import Service
from tests.service.support.visitor import Visitor

HOSTILE = '"><script>alert(1)</script>{{ 7 * 7 }}\u202e'
LINK = re.compile(r'<h2><a href="[^"]*/threads/([^"]+)">')


@pytest.fixture
def visitor(offline: Service) -> Iterator[Visitor]:
    with Visitor(offline) as visitor:
        yield visitor


def test_threads_are_listed_newest_first_and_found(offline: Service, visitor: Visitor, user: str) -> None:
    own = f"/users/{user}/threads"
    assert "There is no thread yet." in visitor.page(own)
    for thread, message in (("t1", "About the harbour."), ("t2", HOSTILE), ("t3", "About the garden.")):
        offline.turn(message, user=user, thread=thread)
    page = visitor.page(own)
    assert LINK.findall(page) == ["t3", "t2", "t1"]
    assert "<script>alert" not in page
    assert "{{ 7 * 7 }}" in page
    assert LINK.findall(visitor.page(f"{own}?text=HARBOUR")) == ["t1"]
    none = visitor.page(f"{own}?text=%22%3Cnowhere")
    assert LINK.findall(none) == []
    assert 'value="&#34;&lt;nowhere"' in none
    assert "No thread has this text" in none


def test_the_list_comes_in_pages(offline: Service, visitor: Visitor, user: str) -> None:
    for number in range(27):
        offline.turn(f"Number {number}", user=user, thread=f"t{number}", memory={"enabled": False})
    first = visitor.page(f"/users/{user}/threads?text=number")
    (following,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = visitor.page(following.replace("&amp;", "&"))
    assert "text=number" in following
    assert LINK.findall(first) + LINK.findall(second) == [f"t{number}" for number in reversed(range(27))]
    assert 'rel="next"' not in second
    assert visitor.get(f"/users/{user}/threads?cursor=x").status_code == 422


def test_a_thread_is_a_conversation_whose_last_page_comes_first(offline: Service, visitor: Visitor, user: str) -> None:
    for number in range(22):
        offline.turn(f"Say <{number}>", user=user, memory={"enabled": False})
    own = f"/users/{user}/threads/t1"
    last = visitor.page(own)
    assert "Say &lt;21&gt;" in last
    assert "Say &lt;1&gt;" not in last
    assert last.count('<article class="card">') == 20
    (earlier,) = re.findall(r'rel="prev" href="([^"]+)"', last)
    before = visitor.page(earlier)
    assert "Say &lt;0&gt;" in before
    assert 'rel="prev"' not in before
    assert visitor.get(f"/users/{user}/threads/t2").status_code == 404


def test_a_title_is_given_and_taken_away(offline: Service, visitor: Visitor, user: str) -> None:
    offline.turn("Hello there.", user=user)
    own = f"/users/{user}/threads/t1"
    assert "<h1><bdi" in visitor.page(own)
    given = visitor.post(f"{own}/title", title=f" {HOSTILE} ")
    assert (given.status_code, given.headers["location"]) == (303, own)
    assert offline.get("/api/threads/t1", user_id=user)["title"] == HOSTILE
    page = visitor.page(own)
    assert "<script>alert" not in page
    assert visitor.post(f"{own}/title", title="x" * 201).status_code == 422
    assert visitor.post(f"{own}/title", title=" ").status_code == 303
    assert offline.get("/api/threads/t1", user_id=user)["title"] is None
    assert "Hello there." in visitor.page(own)


def test_a_summary_is_edited_and_a_late_edit_shows_both_texts(offline: Service, visitor: Visitor, user: str) -> None:
    offline.turn("Hello there.", user=user)
    own = f"/users/{user}/threads/t1"
    (version,) = re.findall(r'name="version" value="([^"]+)"', visitor.page(own))
    assert visitor.post(f"{own}/summary", version=version, summary="We\r\nmet.").status_code == 303
    path = "/api/threads/t1/summary"
    assert offline.get(path, user_id=user) == {"summary": "We\nmet.", "summary_by": "person"}
    late = visitor.post(f"{own}/summary", version=version, summary=HOSTILE)
    assert late.status_code == 412
    assert "We\nmet." in late.text
    assert "&lt;script&gt;alert(1)" in late.text
    assert "<script>alert" not in late.text
    assert offline.get(path, user_id=user)["summary"] == "We\nmet."
    (now,) = re.findall(r'name="version" value="([^"]+)"', late.text)
    assert visitor.post(f"{own}/summary", version=now, summary="").status_code == 303
    assert offline.get(path, user_id=user)["summary"] is None


def test_a_thread_is_archived(offline: Service, visitor: Visitor, user: str) -> None:
    offline.turn("I moved to Oslo in May.", user=user)
    own = f"/users/{user}/threads/t1"
    assert visitor.post(f"{own}/archive").headers["location"] == own
    page = visitor.page(own)
    assert "It is archived" in page
    assert "I moved to Oslo in May." in page
    assert '<span class="tag">archived</span>' in visitor.page(f"/users/{user}/threads")


def test_a_thread_is_deleted_after_a_question(offline: Service, visitor: Visitor, user: str) -> None:
    offline.turn("Hello there.", user=user)
    own = f"/users/{user}/threads/t1"
    asked = visitor.page(f"{own}/delete")
    assert "This cannot be undone." in asked
    part = visitor.get(f"{own}/delete", **{"HX-Request-Type": "partial"}).text
    assert 'id="dialog-title"' in part
    assert "<html" not in part
    gone = visitor.post(f"{own}/delete")
    assert (gone.status_code, gone.headers["location"]) == (303, f"/users/{user}/threads")
    assert visitor.get(own).status_code == 404
    for act in ("title", "archive", "delete"):
        assert visitor.post(f"{own}/{act}").status_code == 404
