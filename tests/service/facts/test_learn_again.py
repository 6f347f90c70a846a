"""Learning from a turn again over HTTP: its difference first, then exactly that, without a second call to the model."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.facts_of import FactsOf
from tests.service.support.lessons import add, extractions_of, teach
from tests.service.support.running import Service, model_settings, service
from tests.service.support.shapes import fields, refused

MESSAGE, OTHER = "I live in Oslo and like green.", "I moved to Rome."
FIRST: Mapping[str, Sequence[Mapping[str, Any]]] = {
    MESSAGE: [add("Oslo", key="city")],
    OTHER: [add("Rome", key="city") | {"decision": "update"}],
}
AGAIN = [add("Oslo", key="city"), add("green", key="colour")]


@pytest.fixture
def ada(served: Service, user: str, model: FakeOpenAI) -> FactsOf:
    teach(model, FIRST)
    return FactsOf(served, user)


def tell(ada: FactsOf, message: str = MESSAGE) -> str:
    turn_id: str = ada.running.turn(message, user=ada.user or "", wait_for_memory=True)["turn_id"]
    return turn_id


def learn(ada: FactsOf, turn_id: str, *, user: str | None = None, **body: Any) -> Any:
    return ada.running.http.post(f"/api/turns/{turn_id}/learn", params={"user_id": user or ada.user}, json=body)


def difference(ada: FactsOf, model: FakeOpenAI, turn_id: str) -> dict[str, Any]:
    teach(model, {**FIRST, MESSAGE: AGAIN})
    answer = learn(ada, turn_id, dry_run=True)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    assert [change["after"] for change in shown["changes"]] == ["green"]
    return shown


def test_what_was_shown_is_done_once_and_nobody_is_asked(ada: FactsOf, model: FakeOpenAI) -> None:
    turn_id = tell(ada)
    shown = difference(ada, model, turn_id)
    assert ada.known() == {"city": "Oslo"}
    calls = len(extractions_of(model, MESSAGE))
    done = learn(ada, turn_id, preview_id=shown["preview_id"])
    assert done.status_code == 200, done.text
    assert done.json()["update"]["changes"][-1:] == shown["changes"]
    assert ada.known() == {"city": "Oslo", "colour": "green"}
    assert learn(ada, turn_id, preview_id=shown["preview_id"]).json() == done.json()
    assert len(extractions_of(model, MESSAGE)) == calls


def test_what_was_learned_in_between_refuses_it(ada: FactsOf, model: FakeOpenAI) -> None:
    turn_id = tell(ada)
    shown = difference(ada, model, turn_id)
    ada.put("colour", value="blue")
    refused(learn(ada, turn_id, preview_id=shown["preview_id"]), 409, "preview_outdated")
    assert ada.known() == {"city": "Oslo", "colour": "blue"}


def test_what_was_forgotten_in_between_refuses_it(ada: FactsOf, model: FakeOpenAI) -> None:
    turn_id = tell(ada)
    shown = difference(ada, model, turn_id)
    ada.put("shade", value="green")
    assert ada.ask("DELETE", f"/{ada.one('shade')['id']}").status_code == 204
    refused(learn(ada, turn_id, preview_id=shown["preview_id"]), 409, "preview_outdated")
    assert ada.known() == {"city": "Oslo"}


def test_learning_from_another_turn_leaves_what_it_does_not_touch(ada: FactsOf, model: FakeOpenAI) -> None:
    turn_id = tell(ada)
    shown = difference(ada, model, turn_id)
    tell(ada, OTHER)
    assert learn(ada, turn_id, preview_id=shown["preview_id"]).status_code == 200
    assert ada.known() == {"city": "Rome", "colour": "green"}


def test_another_users_and_unknown_previews_and_wrong_bodies_are_refused(ada: FactsOf, model: FakeOpenAI) -> None:
    turn_id = tell(ada)
    shown = difference(ada, model, turn_id)
    other = f"{ada.user}-other"
    ada.running.turn(MESSAGE, user=other, turn_id=turn_id, wait_for_memory=True)
    refused(learn(ada, turn_id, preview_id=shown["preview_id"], user=other), 404, "not_found")
    refused(learn(ada, turn_id, preview_id="never"), 404, "not_found")
    refused(learn(ada, "never", preview_id=shown["preview_id"]), 404, "not_found")
    assert fields(learn(ada, turn_id, preview_id="not an id")) == ["preview_id"]
    both: list[dict[str, Any]] = [{"model": "m"}, {"dry_run": True}]
    for more in both:
        assert learn(ada, turn_id, preview_id=shown["preview_id"], **more).status_code == 422
    assert ada.known() == {"city": "Oslo"}


@pytest.mark.slow
def test_a_kill_while_it_is_done_has_it_done_once(tmp_path: Path, model: FakeOpenAI) -> None:
    teach(model, FIRST)
    with service(tmp_path, **model_settings(model.url)) as running:
        ada = FactsOf(running, "ada")
        turn_id = tell(ada)
        shown = difference(ada, model, turn_id)
        calls, sent = len(extractions_of(model, MESSAGE)), threading.Event()

        def send() -> None:
            sent.set()
            try:
                learn(ada, turn_id, preview_id=shown["preview_id"])
            except httpx.TransportError:
                return

        sending = threading.Thread(target=send)
        sending.start()
        sent.wait(10)
        running.kill()
        sending.join()
        running.start()
        done = learn(ada, turn_id, preview_id=shown["preview_id"])
        assert done.status_code == 200, done.text
        assert [change["after"] for change in done.json()["update"]["changes"]] == ["Oslo", "green"]
        assert ada.known() == {"city": "Oslo", "colour": "green"}
        assert len(ada.items()) == 2
        assert len(extractions_of(model, MESSAGE)) == calls
