"""The page of a turn, and a person's acts on it, without JavaScript."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.visitor import Visitor

MESSAGE = "I live in Oslo, and I like green. <script>alert(1)</script>"
LATER = "I live in Rome now."
LESSONS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    MESSAGE: [add("Oslo", key="city", evidence="I live in Oslo"), add("gold", key="metal", evidence="I love gold")],
    LATER: [add("Rome", key="city", evidence="I live in Rome") | {"decision": "update"}],
}


@pytest.fixture
def visitor(served: Service, model: FakeOpenAI) -> Iterator[Visitor]:
    teach(model, LESSONS)
    with Visitor(served) as visitor:
        yield visitor


def told(served: Service, user: str, message: str = MESSAGE) -> str:
    turn_id: str = served.turn(message, user=user, wait_for_memory=True)["turn_id"]
    return turn_id


def facts(served: Service, user: str) -> dict[str, str]:
    known: dict[str, str] = served.get(f"/api/users/{user}/facts")["facts"]
    return known


def test_a_turn_shows_what_it_taught_and_marks_the_words(served: Service, visitor: Visitor, user: str) -> None:
    turn_id = told(served, user)
    page = visitor.page(f"/users/{user}/turns/{turn_id}")
    assert "<mark>I live in Oslo</mark>, and I like green. &lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "gold" in page
    assert "the message has no such words" in page
    assert f'href="/users/{user}/threads/t1"' in page
    assert 'aria-current="page">Threads<' in page


def test_an_undo_is_asked_for_and_done(served: Service, visitor: Visitor, user: str) -> None:
    turn_id = told(served, user)
    own = f"/users/{user}/turns/{turn_id}"
    asked = visitor.page(f"{own}/undo")
    assert "Oslo" in asked
    assert f'action="{own}/undo"' in asked
    assert facts(served, user) == {"city": "Oslo"}
    done = visitor.post(f"{own}/undo")
    assert (done.status_code, done.headers["location"]) == (303, own)
    assert facts(served, user) == {}
    assert "Taken back at" in visitor.page(own)


def test_what_changed_since_is_listed_and_the_rest_undone(served: Service, visitor: Visitor, user: str) -> None:
    turn_id = told(served, user)
    own = f"/users/{user}/turns/{turn_id}"
    served.http.put(f"/api/users/{user}/facts/by-key/city", json={"value": "Bergen"})
    stopped = visitor.post(f"{own}/undo")
    assert stopped.status_code == 409
    assert "a person has changed it" in stopped.text
    assert "Undo the rest" in stopped.text
    assert facts(served, user) == {"city": "Bergen"}
    assert visitor.post(f"{own}/undo", force="true").status_code == 303
    assert facts(served, user) == {"city": "Bergen"}
    assert "Left as they were" in visitor.page(own)


def preview_id_of(page: str) -> str:
    found = re.search(r'name="preview_id" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_learning_again_shows_its_difference_first_and_does_exactly_that(
    served: Service, visitor: Visitor, model: FakeOpenAI, user: str
) -> None:
    own = f"/users/{user}/turns/{told(served, user)}"
    asked = visitor.page(f"{own}/learn")
    assert f'action="{own}/learn/preview"' in asked
    assert "would change nothing" in visitor.post(f"{own}/learn/preview").text
    teach(model, {MESSAGE: [add("green", key="colour", evidence="I like green"), add("tin", key="metal")]})
    difference = visitor.post(f"{own}/learn/preview")
    assert difference.status_code == 200
    assert '<ins><bdi class="said">green</bdi></ins>' in difference.text
    assert "Refused:" in difference.text
    assert facts(served, user) == {"city": "Oslo"}
    calls = len(model.extractions)
    done = visitor.post(f"{own}/learn", preview_id=preview_id_of(difference.text))
    assert (done.status_code, done.headers["location"]) == (303, own)
    assert facts(served, user) == {"city": "Oslo", "colour": "green"}
    assert len(model.extractions) == calls
    assert "<mark>I like green</mark>" in visitor.page(own)


def test_what_would_differ_by_now_is_not_done(served: Service, visitor: Visitor, model: FakeOpenAI, user: str) -> None:
    own = f"/users/{user}/turns/{told(served, user)}"
    teach(model, {MESSAGE: [add("green", key="colour", evidence="I like green")]})
    preview_id = preview_id_of(visitor.post(f"{own}/learn/preview").text)
    served.http.put(f"/api/users/{user}/facts/by-key/colour", json={"value": "blue"})
    stopped = visitor.post(f"{own}/learn", preview_id=preview_id)
    assert stopped.status_code == 409
    assert "Nothing was changed." in stopped.text
    assert "Show the difference" in stopped.text
    assert facts(served, user) == {"city": "Oslo", "colour": "blue"}
    assert visitor.post(f"{own}/learn", preview_id="never").status_code == 404


def test_the_last_reply_is_regenerated(served: Service, visitor: Visitor, model: FakeOpenAI, user: str) -> None:
    first, last = told(served, user), told(served, user, LATER)
    pages = [visitor.page(f"/users/{user}/turns/{turn_id}") for turn_id in (first, last)]
    assert ["/regenerate" in page for page in pages] == [False, True]
    assert "Regenerate" in visitor.page(f"/users/{user}/turns/{last}/regenerate")
    model.script("A cucumber answer.")
    assert visitor.post(f"/users/{user}/turns/{last}/regenerate").status_code == 303
    assert "A cucumber answer." in visitor.page(f"/users/{user}/turns/{last}")
    late = visitor.post(f"/users/{user}/turns/{first}/regenerate")
    assert (late.status_code, "<h1>It has changed meanwhile</h1>" in late.text) == (409, True)


def test_a_turn_shows_its_hits_the_parts_of_their_scores_and_what_was_left_out(offline: Service, user: str) -> None:
    for number in range(8):
        offline.turn(f"Pizza number {number} had figs on it.", user=user, thread=f"t{number}", wait_for_memory=True)
    options = {"scope": "user", "top_k": 1}
    turn_id = offline.turn("Which pizza had figs?", user=user, thread="new", memory=options)["turn_id"]
    with Visitor(offline) as visitor:
        page = visitor.page(f"/users/{user}/turns/{turn_id}")
        assert page.count('<span class="bar-label">all channels</span>') > 1
        assert "others score higher" in page
        assert "As the model read it" in page
        part = visitor.get(f"/users/{user}/turns/{turn_id}", **{"HX-Request-Type": "partial"}).text
        assert "<html" not in part
        assert "What was left out" in part


def test_what_was_forgotten_since_is_named_as_such(offline: Service, user: str) -> None:
    facts_of = f"/api/users/{user}/facts"
    made = offline.http.put(f"{facts_of}/by-key/codeword", json={"value": "swordfish"}).json()
    turn_id = offline.turn("What is my codeword?", user=user)["turn_id"]
    with Visitor(offline) as visitor:
        assert "swordfish" in visitor.page(f"/users/{user}/turns/{turn_id}")
        assert offline.http.delete(f"{facts_of}/{made['id']}").status_code == 204
        page = visitor.page(f"/users/{user}/turns/{turn_id}")
        assert "(forgotten since)" in page


@pytest.mark.parametrize("path", ["", "/undo", "/learn", "/regenerate"])
def test_no_page_of_a_turn_that_is_not_there(offline: Service, user: str, path: str) -> None:
    with Visitor(offline) as visitor:
        answer = visitor.get(f"/users/{user}/turns/nothing{path}")
        assert answer.status_code == 404
        assert "There is no such turn of this user." in answer.text
        assert visitor.post(f"/users/{user}/turns/nothing/undo").status_code == 404


def test_an_older_turn_says_what_is_not_recorded(offline: Service, user: str) -> None:
    line = {"user_id": user, "thread_id": "old", "role": "user", "content": "Hello from long ago.", "message_id": "m1"}
    taken = offline.http.post("/api/import", content=json.dumps({**line, "timestamp": "2026-02-02T09:00:00Z"}))
    assert taken.json()["failed"] == []
    (message,) = offline.get("/api/threads/old/messages", user_id=user)["items"]
    with Visitor(offline) as visitor:
        page = visitor.page(f"/users/{user}/turns/{message['turn_id']}")
        assert page.count("Not recorded: the turn is of an earlier version.") == 2
        assert "Hello from long ago." in page
