"""Checks what turns and searches find in documents, and what the chat model is given of them."""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.documents_of import add, attach, search
from tests.service.support.lessons import chats_of
from tests.service.support.running import Service, model_settings, service, until
from tests.service.turns.test_prompt import HOSTILE, system_of

LONG = "\n\n".join(f"Chapter {number}. The keeper counts ships, number {number} of many." * 12 for number in range(30))


def documents(hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [hit for hit in hits if hit["kind"] == "document"]


def test_a_turn_finds_what_the_users_documents_say(offline: Service, user: str) -> None:
    made = add(offline, user, "The lighthouse opens at nine in winter.", title="Hours", domain="sea", source="s")
    turn = offline.turn("When does the lighthouse open?", user=user)
    (hit,) = turn["memory"]["hits"]
    assert hit["content"] == "The lighthouse opens at nine in winter."
    assert (hit["kind"], hit["role"], hit["thread_id"], hit["turn_id"]) == ("document", None, None, None)
    assert hit["document"] == {"id": made["id"], "title": "Hours", "domain": "sea", "source": "s", "page": None}
    assert hit["score"] > 0
    assert "whole" not in hit
    assert offline.turn("When does the lighthouse open?", user=f"{user}-b")["memory"]["hits"] == []
    disabled = offline.turn("The lighthouse?", user=user, memory={"enabled": False})
    assert disabled["memory"]["hits"] == []


def test_domains_choose_and_attached_ones_come_along(offline: Service, user: str) -> None:
    sea = add(offline, user, "The lighthouse opens at nine.", domain="sea")
    land = add(offline, user, "The lighthouse stands on a hill.", domain="land")
    none = add(offline, user, "The lighthouse is red.")

    def found(**more: Any) -> set[str]:
        return {hit["document"]["id"] for hit in search(offline, user, "lighthouse", **more)}

    assert found() == {sea["id"], land["id"], none["id"]}
    assert found(domains=[]) == found()
    assert found(domains=["sea"]) == {sea["id"]}
    assert found(domains=["sea", "land"]) == {sea["id"], land["id"]}
    assert found(domains=["nowhere"]) == set()
    assert found(thread_id="t1") == set()
    attach(offline, user, "t1", none["id"])
    assert found(thread_id="t1") == {none["id"]}
    assert found(thread_id="t1", domains=["land"]) == {none["id"], land["id"]}
    memory = {"domains": ["sea"]}
    turn = offline.turn("The lighthouse?", user=user, thread="other", memory=memory)
    assert {hit["document"]["id"] for hit in turn["memory"]["hits"]} == {sea["id"]}
    turn = offline.turn("The lighthouse?", user=user, thread="t1", memory=memory)
    assert {hit["document"]["id"] for hit in documents(turn["memory"]["hits"])} == {sea["id"], none["id"]}


@pytest.mark.parametrize("domains", [["x" * 65], [""], [str(number) for number in range(21)], "sea", [1]])
def test_domains_are_checked(offline: Service, user: str, domains: Any) -> None:
    body = {"user_id": user, "query": "x", "domains": domains}
    assert offline.http.post("/api/memory/search", json=body).status_code == 422
    turn = {"user_id": user, "thread_id": "t", "message": "x", "memory": {"domains": domains}}
    assert offline.http.post("/api/agent", json=turn).status_code == 422


def test_small_attached_documents_are_given_whole(served: Service, model: FakeOpenAI, user: str) -> None:
    text = "House rules.\n\n- Tea is served at four.\n- Shoes stay outside."
    small = add(served, user, text, title="Rules")
    large = add(served, user, LONG, title="Log book")
    for document in (small, large):
        attach(served, user, "t1", document["id"])
    message = f"What about ships, {user}?"
    turn = served.turn(message, user=user, wait_for_memory=True)
    whole, *others = turn["memory"]["hits"]
    assert (whole["content"], whole["whole"], whole["document"]["id"]) == (text, True, small["id"])
    assert {hit["document"]["id"] for hit in others} == {large["id"]}
    assert len(others) == 5
    assert not any(hit.get("whole") for hit in others)
    prompt = system_of(model, message)
    assert "Documents attached to this conversation:" in prompt
    assert '"Rules": "House rules.\\n\\n- Tea is served at four.' in prompt
    assert '"Log book": "' in prompt
    assert "Passages of documents that may matter now:" in prompt
    assert prompt.index("Documents attached") < prompt.index("Passages of documents")
    again = served.turn("And now?", user=user, memory={"top_k": 0})
    assert [hit["document"]["id"] for hit in again["memory"]["hits"]] == [small["id"]]
    elsewhere = served.turn(f"Tea, {user}?", user=user, thread="t2", memory={"top_k": 1})
    assert not any(hit.get("whole") for hit in elsewhere["memory"]["hits"])


def test_hostile_documents_stay_quoted_data(served: Service, model: FakeOpenAI, user: str) -> None:
    attached = add(served, user, f"Attached. {HOSTILE}", title=f"A {HOSTILE[:60]}")
    add(served, user, f"Found. {HOSTILE}", title=f"B {HOSTILE[:60]}")
    attach(served, user, "t1", attached["id"])
    message = f"What is found, {user}?"
    served.turn(message, user=user)
    prompt = system_of(model, message)
    assert prompt.count("</memory>") == 1
    assert prompt.rstrip().endswith("</memory>")
    assert "<script>" not in prompt
    assert not any(line.startswith("SYSTEM:") for line in prompt.splitlines())


def test_the_model_is_shown_what_attached_documents_say_already(served: Service, model: FakeOpenAI, user: str) -> None:
    said = "My locker has the number 4711."
    attached = add(served, user, f"{said}\n\nOther matters are dealt with elsewhere at length." + "\n\n" + LONG)
    add(served, user, said)
    attach(served, user, "t1", attached["id"])
    exact = add(served, user, f"{said} ", title="Lockers", source="exact")
    attach(served, user, "t1", exact["id"])
    served.turn(said, user=user, wait_for_memory=True)
    (asked,) = [body for body in model.extractions if said in str(body)]
    shown = str(asked["messages"][-1]["content"])
    assert '- {"document": "Lockers", "says": "My locker has the number 4711."}' in shown
    assert shown.count('"document":') == 1


def test_a_document_that_changed_is_not_embedded_again(served: Service, model: FakeOpenAI, user: str) -> None:
    made = add(served, user, LONG, source="log")
    before = len(model.embeddings)
    again = add(served, user, LONG, source="log", title="Another title", domain="sea")
    assert (again["id"], again["title"], len(model.embeddings)) == (made["id"], "Another title", before)
    changed = LONG.replace("number 7 of many", "number seven of many")
    served.http.post("/api/documents", json={"user_id": user, "text": changed, "source": "log"})
    inputs = [text for body in model.embeddings[before:] for text in body["input"]]
    assert 0 < len(inputs) <= 3
    assert all("seven" in text for text in inputs)
    assert search(served, user, "seven", domains=["sea"]) == []  # what is not said anew is not kept
    assert "seven" in search(served, user, "seven")[0]["content"]
    doctored = served.get("/api/admin/doctor")
    (found,) = [each for each in doctored["users"] if each["user_id"] == user]
    assert (found["missing"], found["orphaned"], found["wrong_fingerprint"], found["pending"]) == (0, 0, 0, 0)
    assert found["passages"] == found["points"] == changed_passages(served, user)


def changed_passages(running: Service, user: str) -> int:
    return sum(item["passages"] for item in running.get("/api/documents", user_id=user)["items"])


def test_documents_are_rebuilt_and_repaired_like_all_else(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        made = add(running, "ada", LONG)
        add(running, "ada", "The lighthouse opens at nine.")
        running.turn("I like tea.", wait_for_memory=True)
        assert running.http.post("/api/admin/reindex", json={}).status_code == 200
        assert running.get("/api/admin/doctor")["healthy"]
        assert running.stop() == 0
        for path in sorted((running.data_dir / "index").rglob("*"), reverse=True):
            if path.is_file():
                path.unlink()
        running.start()
        until(lambda: running.get("/api/admin/doctor")["healthy"])
        assert search(running, "ada", "lighthouse", top_k=1)[0]["content"] == "The lighthouse opens at nine."
        doctored = running.get("/api/admin/doctor")
        assert doctored["healthy"], doctored
        assert doctored["totals"]["passages"] == made["passages"] + 1
        assert running.http.delete("/api/threads/t1", params={"user_id": "ada"}).status_code == 204
        assert running.get(f"/api/documents/{made['id']}", user_id="ada")["status"] == "done"


def test_a_user_without_documents_pays_for_no_search(tmp_path: Path) -> None:
    with FakeOpenAI() as fake, service(tmp_path, **model_settings(fake.url, EMBEDDING_MODEL="fake-embed")) as running:
        running.turn("First.", wait_for_memory=True)
        asked = len(fake.embeddings)
        running.turn("Second.", memory={"window": 10})
        assert [body["input"] for body in fake.embeddings[asked:] if body["input"] in ("Second.", ["Second."])] == []
        assert chats_of(fake, "Second.")
