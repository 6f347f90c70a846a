"""Talk without JavaScript, and what an open page asks for, over HTTP."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.locked import made_key
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import events, facts, texts
from tests.service.support.visitor import Visitor, checked

HOSTILE = "<img src=x onerror=alert(1)>{{ 7 * 7 }}</textarea></template><script>alert(2)</script>\u202e"
HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')


@pytest.fixture
def visitor(offline: Service) -> Iterator[Visitor]:
    with Visitor(offline) as visitor:
        yield visitor


def fields(page: str) -> dict[str, str]:
    """Return the hidden fields of the form that says something."""
    form = page[page.index('<form id="talk"') :].partition("</form>")[0]
    return {name: unescape(value) for name, value in HIDDEN.findall(form)}


def typed(page: str) -> str:
    """Return the words that wait in the form."""
    return unescape(page.partition("<textarea")[2].partition(">\n")[2].partition("</textarea>")[0])


def send(visitor: Visitor, path: str, form: dict[str, str], message: str) -> httpx.Response:
    """Send a form with words in it."""
    return checked(visitor.http.post(path, data={**form, "message": message}, headers={"Origin": visitor.origin}))


def say(visitor: Visitor, user: str, message: str, **more: str) -> httpx.Response:
    """Open the page, fill in its form and send it."""
    own = f"/users/{user}/talk"
    return send(visitor, own, {**fields(visitor.page(own)), **more}, message)


def stream(visitor: Visitor, user: str, **words: Any) -> httpx.Response:
    """Send words as an open page does."""
    page = fields(visitor.page(f"/users/{user}/talk"))
    headers = {"Origin": visitor.origin, "Recollect-Token": page.pop("token"), "HX-Request-Type": "partial"}
    return checked(visitor.http.post(f"/users/{user}/talk/stream", json={**page, **words}, headers=headers))


def test_the_answer_to_a_form_comes_with_the_next_page(offline: Service, visitor: Visitor, user: str) -> None:
    sent = say(visitor, user, "My name is Ada.\r\nI live in Paris.")
    assert sent.status_code == 303, sent.text
    page = visitor.page(sent.headers["location"])
    assert "My name is Ada.\nI live in Paris." in page
    assert ">Correct " in page
    assert "Take it back" in page
    assert typed(page) == ""
    assert facts(offline, user=user)["name"] == "Ada"


def test_a_form_that_is_sent_twice_is_one_turn(offline: Service, visitor: Visitor, user: str) -> None:
    own = f"/users/{user}/talk"
    form = fields(visitor.page(own))
    for _ in range(2):
        assert send(visitor, own, form, "Hello there.").status_code == 303
    assert [role for role, _ in texts(offline, user=user, thread=form["thread_id"])] == ["user", "assistant"]


def test_other_words_under_the_same_id_are_not_lost(visitor: Visitor, user: str) -> None:
    own = f"/users/{user}/talk"
    form = fields(visitor.page(own))
    assert send(visitor, own, form, "Hello there.").status_code == 303
    changed = send(visitor, own, form, "Hello again.")
    assert changed.status_code == 409
    assert typed(changed.text) == "Hello again."
    fresh = fields(changed.text)
    assert fresh["turn_id"] != form["turn_id"]
    assert send(visitor, own, fresh, "Hello again.").status_code == 303


@pytest.mark.parametrize("message", ["", "x" * 200_001, "NUL \x00"])
def test_words_that_are_refused_stay_in_the_form(visitor: Visitor, user: str, message: str) -> None:
    answer = say(visitor, user, message, unremembered="true")
    assert answer.status_code == 422
    assert typed(answer.text) == message
    assert 'value="true" checked' in answer.text
    assert 'role="alert"' in answer.text


def test_a_turn_that_is_not_remembered(offline: Service, visitor: Visitor, user: str) -> None:
    sent = say(visitor, user, "My name is Ada.", unremembered="true")
    page = visitor.page(sent.headers["location"])
    assert "Not remembered: nothing was recalled for it, and nothing is learned from it." in page
    assert facts(offline, user=user) == {}


def test_hostile_words_are_shown_as_text(visitor: Visitor, user: str) -> None:
    sent = say(visitor, user, f"My name is {HOSTILE}.")
    page = visitor.page(sent.headers["location"])
    again = say(visitor, user, HOSTILE, turn_id=fields(page)["turn_id"], thread_id="..").text
    for shown in (page, again):
        assert "<img" not in shown
        assert "<script>" not in shown
        assert "49</" not in shown


def test_a_thread_shows_its_last_turns_and_the_earlier_threads(offline: Service, visitor: Visitor, user: str) -> None:
    for number in range(12):
        offline.turn(f"Message number {number} here.", user=user, thread="long|one")
    page = visitor.page(f"/users/{user}/talk?thread=long%7Cone")
    assert "Message number 2 here." in page
    assert "Message number 11 here." in page
    assert "You said" in page
    assert page.count('<article class="card talk-turn" id="turn-') == 11, "ten, and the blank one"
    assert f'href="/users/{user}/talk?thread=long%7Cone" aria-current="true"' in page
    assert "Message number 0 here." in visitor.page(f"/users/{user}/talk"), "its title, among the earlier threads"
    assert visitor.page(f"/users/{user}/talk").count('id="turn-') == 1


def test_many_facts_are_counted(offline: Service, visitor: Visitor, user: str) -> None:
    for number in range(11):
        body = {"value": f"value {number}"}
        assert offline.http.put(f"/api/users/{user}/facts/by-key/key_{number}", json=body).is_success
    sent = say(visitor, user, "What do you know about me?")
    page = visitor.page(sent.headers["location"])
    assert "and 3 more facts" in page


def test_an_open_page_gets_parts_of_the_page(visitor: Visitor, user: str) -> None:
    answer = stream(visitor, user, message=f"My name is Ada. {HOSTILE}", turn_id="t|1", thread_id="one")
    assert answer.headers["content-type"].startswith("text/event-stream")
    came = events(answer.text)
    names = [name for name, _ in came]
    assert names[:2] == ["turn", "memory"]
    assert names[-1] == "message"
    assert came[0][1] == {"turn_id": "t|1"}
    assert 'class="talk-recalled"' in came[1][1]["html"]
    assert 'id="turn-t|1"' in came[-1][1]["html"]
    assert "<img" not in json.dumps(came[-1])
    part = visitor.get(f"/users/{user}/talk/turns/t%7C1?wait=true", **{"HX-Request-Type": "partial"}).text
    assert "data-pending" not in part
    assert "<ins>" in part
    assert "<html" not in part
    whole = visitor.get(f"/users/{user}/talk/turns/t%7C1")
    assert (whole.status_code, whole.headers["location"]) == (303, f"/users/{user}/turns/t%7C1")


def test_an_open_page_gets_errors_as_notices(visitor: Visitor, user: str) -> None:
    for words in ({"message": ""}, {"message": "Hi", "thread_id": "no id"}):
        answer = stream(visitor, user, **words)
        assert answer.status_code == 422
        assert '<div class="notice bad">' in answer.text
        assert "<html" not in answer.text
    missing = visitor.get(f"/users/{user}/talk/turns/nothing", **{"HX-Request-Type": "partial"})
    assert missing.status_code == 404


def test_an_act_of_an_open_page_needs_the_token(offline: Service, visitor: Visitor, user: str) -> None:
    words = {"message": "My name is Ada.", "turn_id": "a", "thread_id": "b"}
    for token in ("", "x"):
        headers = {"Origin": visitor.origin, "Recollect-Token": token}
        assert visitor.http.post(f"/users/{user}/talk/stream", json=words, headers=headers).status_code == 403
    assert texts(offline, user=user, thread="b") == []


@pytest.mark.parametrize("unremembered", [False, True])
def test_a_turn_without_an_answer_is_sent_again(tmp_path: Path, fake: FakeOpenAI, *, unremembered: bool) -> None:
    with service(tmp_path, **model_settings(fake.url)) as running, Visitor(running) as visitor:
        fake.fail(400, times=-1)
        chosen = {"unremembered": "true"} if unremembered else {}
        broken = say(visitor, "ada", "my colour is green", thread_id="one", turn_id="t1", **chosen)
        assert broken.status_code >= 500
        assert typed(broken.text) == "my colour is green"
        came = events(stream(visitor, "ada", message="my colour is green", thread_id="one", turn_id="t1").text)
        assert [name for name, _ in came][-1] == "error"
        assert '<div class="notice bad">' in came[-1][1]["html"]
        page = visitor.page("/users/ada/talk?thread=one")
        assert "Send it again" in page
        fake.recover()
        # The page knows no more than the turn's id: its words, and whether it is remembered, are stored.
        again = visitor.post("/users/ada/talk", thread_id="one", turn_id="t1")
        assert again.status_code == 303, again.text
        assert "All right." in visitor.page(again.headers["location"])
        running.settled("t1")
        assert facts(running) == ({} if unremembered else {"colour": "green"})


def test_a_user_talks_for_nobody_else(tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key") as running, Visitor(running) as visitor:
        assert visitor.sign_in(made_key(running, "user:ada")["key"]).status_code == 303
        form = fields(visitor.page("/users/ada/talk"))
        for path in ("/users/bo/talk", "/users/bo/talk/turns/t1"):
            assert visitor.get(path).status_code == 404
        assert send(visitor, "/users/bo/talk", form, "Hi.").status_code == 404
        headers = {"Origin": visitor.origin, "Recollect-Token": form["token"]}
        assert (
            visitor.http.post("/users/bo/talk/stream", json={**form, "message": "Hi."}, headers=headers).status_code
            == 404
        )
        assert send(visitor, "/users/ada/talk", form, "My name is Ada.").status_code == 303


def test_the_page_says_where_no_model_is_set(offline: Service, served: Service, user: str) -> None:
    for running, is_told in ((offline, True), (served, False)):
        with Visitor(running) as visitor:
            assert ("No model is set" in visitor.page(f"/users/{user}/talk")) is is_told
