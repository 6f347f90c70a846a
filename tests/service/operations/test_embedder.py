"""`recollect embedder`: another embedder is prepared behind the service, serves by one write, and leaves no bytes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect, recollecting
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.shapes import refused

TURNS = 12
STATUS = "/api/admin/embedder"
Json = dict[str, Any]


@pytest.fixture
def talked(fake: FakeOpenAI, tmp_path: Path) -> Iterator[Service]:
    """Yield a service with the lexical embedder, some messages, and a model server that could embed."""
    with service(tmp_path, **model_settings(fake.url, EMBEDDING_MODEL="lexical", SHUTDOWN_SECONDS="2")) as running:
        for number in range(TURNS):
            running.turn(f"I saw number {number} today.", thread=f"t{number % 3}")
        settled(running)
        yield running


def settled(running: Service) -> None:
    def is_settled() -> bool:
        report = running.get("/api/admin/doctor")
        return report["healthy"] and not report["totals"]["pending"]

    until(is_settled)


def run(running: Service, *arguments: str, code: int = 0) -> str:
    ended = recollect(running, "embedder", *arguments)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout + ended.stderr


def points(running: Service) -> tuple[int, int]:
    """Return the points of the embedder that serves, and of the other one."""
    status = running.get(STATUS)
    return status["serving"]["points"], status["other"]["points"]


def found(running: Service, query: str = "Which number 7 did I see?") -> list[str]:
    body = {"user_id": "ada", "query": query, "top_k": 5, "kinds": ["episode"], "score_threshold": -1.0}
    answer = running.http.post("/api/memory/search", json=body)
    assert answer.status_code == 200, answer.text
    return [hit["content"] for hit in answer.json()["hits"]]


def files(running: Service, named: str) -> list[str]:
    return [item.name for item in (running.data_dir / "index").iterdir() if named in item.name]


def test_an_embedder_is_prepared_switched_and_dropped_while_the_service_answers(
    talked: Service, fake: FakeOpenAI
) -> None:
    for verb in ("switch", "back", "drop"):
        refused(talked.http.post(f"{STATUS}/{verb}"), 409, "embedder_conflict")
    refused(talked.http.post(f"{STATUS}/prepare", json={"model": "lexical"}), 409, "embedder_conflict")
    answer = talked.http.post(f"{STATUS}/prepare", json={"model": "fastembed:of-nobody", "path": "/nowhere"})
    refused(answer, 422, "invalid_request")
    fake.embedding_seconds = 0.2
    command = recollecting(talked, "embedder", "prepare", "fake-embed")
    seen = [found(talked)]
    while command.poll() is None:
        seen.append(found(talked))
    told, shown = command.communicate()
    fake.embedding_seconds = 0
    assert command.returncode == 0, told + shown
    assert "fake-embed is ready" in told
    assert all("I saw number 7 today." in hits for hits in seen)
    expected = talked.get(STATUS)["expected"]
    assert points(talked) == (expected, expected)
    assert talked.get(STATUS)["stage"] == "ready"

    talked.turn("I saw number 99 today.", wait_for_memory=True)
    until(lambda: points(talked) == (expected + 2, expected + 2))
    asked = len(fake.embeddings)
    found(talked, "before the switch")
    assert len(fake.embeddings) == asked
    assert "fake-embed" in run(talked, "switch")
    assert "I saw number 99 today." in found(talked, "I saw number 99 today.")
    assert len(fake.embeddings) == asked + 1
    settled(talked)

    assert talked.stop() == 0
    talked.start()
    assert "EMBEDDING_MODEL is lexical, but fake-embed serves" in talked.log
    assert talked.get(STATUS)["serving"]["model"] == "fake-embed"
    talked.turn("I saw number 111 today.", wait_for_memory=True)
    until(lambda: points(talked) == (expected + 4, expected + 4))
    assert json.loads(run(talked, "back", "--json"))["serving"]["model"] == "lexical"
    assert "I saw number 111 today." in found(talked, "I saw number 111 today.")
    run(talked, "switch")
    run(talked, "drop")
    assert talked.get(STATUS)["other"] is None
    assert talked.get(STATUS)["serving"]["model"] == "fake-embed"
    assert files(talked, "lexical") == []
    assert len(files(talked, "fake-embed")) == 1
    talked.turn("I saw number 222 today.", wait_for_memory=True)
    assert "I saw number 222 today." in found(talked, "I saw number 222 today.")
    settled(talked)


@pytest.mark.slow
def test_a_killed_filling_goes_on_and_an_outage_keeps_the_points_owed(talked: Service, fake: FakeOpenAI) -> None:
    def hang_at_many(body: Json) -> None:
        if len(body["input"]) > 4:
            fake.hang()

    fake.on_embeddings = hang_at_many
    command = recollecting(talked, "embedder", "prepare", "fake-embed")
    until(lambda: any(len(body["input"]) > 4 for body in fake.embeddings))
    refused(talked.http.post(f"{STATUS}/prepare", json={"model": "fake-embed"}), 409, "embedder_conflict")
    talked.kill()
    told, shown = command.communicate()
    assert command.returncode == 1, told + shown
    fake.on_embeddings = None
    fake.release()
    talked.start()
    until(lambda: talked.get(STATUS)["stage"] == "ready")
    expected = talked.get(STATUS)["expected"]
    assert points(talked) == (expected, expected)

    fake.fail(503, times=1_000, path="embeddings")
    turn = talked.turn("I saw number 99 today.")
    until(lambda: points(talked)[0] > expected)
    assert "I saw number 99 today." in found(talked, "I saw number 99 today.")
    assert talked.get(f"/api/turns/{turn['turn_id']}", user_id="ada")["memory"]["update"]["status"] == "pending"
    fake.recover()
    assert talked.settled(turn["turn_id"], seconds=45)["memory"]["update"]["status"] == "done"
    assert points(talked)[0] == points(talked)[1]


def test_forgetting_and_erasing_reach_both_collections_to_the_bytes(talked: Service) -> None:
    run(talked, "prepare", "fake-embed")
    talked.turn("My locker is Zanzibar-4711.", user="eve", wait_for_memory=True)
    both = points(talked)
    assert both[0] == both[1]
    thread = talked.http.delete("/api/threads/t0", params={"user_id": "ada"})
    assert thread.status_code == 204, thread.text
    assert points(talked)[0] == points(talked)[1] < both[0]
    erased = talked.http.delete("/api/users/eve")
    assert erased.status_code == 200, erased.text
    assert not any(erased.json()["remaining"].values())
    assert points(talked)[0] == points(talked)[1]
    talked.stop()
    left = [
        path.name
        for path in (talked.data_dir / "index").rglob("*")
        if path.is_file() and b"Zanzibar" in path.read_bytes()
    ]
    assert left == []


def test_without_a_service_the_commands_do_it_themselves(talked: Service) -> None:
    talked.stop()
    assert "fake-embed is ready" in run(talked, "prepare", "fake-embed")
    assert "lexical" in run(talked, "status")
    run(talked, "switch")
    run(talked, "drop")
    assert files(talked, "lexical") == []
    assert "does not exist" in run(talked, "status", "--data-dir", "nowhere", code=2)
    talked.start()
    assert talked.get(STATUS)["serving"]["model"] == "fake-embed"
    assert "I saw number 7 today." in found(talked)
    settled(talked)


def test_an_embedder_is_compared_in_a_collection_of_its_own_which_goes_again(talked: Service, fake: FakeOpenAI) -> None:
    (talked.folder / "b.env").write_text("EMBEDDING_MODEL=fake-embed\n")
    message = talked.get("/api/threads/t1/messages", user_id="ada")["items"][0]
    asked = {"user_id": "ada", "query": message["content"], "expect": [message["id"]]}
    (talked.folder / "cases.jsonl").write_text(json.dumps(asked))
    ended = recollect(talked, "eval", "cases.jsonl", "--compare", "b.env", "--json")
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert (said["R@10"], said["compared"]["R@10"]) == (100, 100)
    embedded = {text for body in fake.embeddings for text in body["input"]}
    assert message["content"] in embedded
    assert files(talked, "fake-embed") == []
    assert talked.get(STATUS)["other"] is None
    settled(talked)
    (talked.folder / "b.env").write_text("EMBEDDING_MODEL=fastembed:of-nobody\nEMBEDDING_MODEL_PATH=/nowhere\n")
    assert recollect(talked, "eval", "cases.jsonl", "--compare", "b.env").returncode == 1


def test_an_embedder_whose_collection_is_open_is_compared_as_it_is(talked: Service) -> None:
    run(talked, "prepare", "fake-embed")
    dimension = int(talked.get(STATUS)["other"]["collection"].rpartition("-")[2])
    other = {"embedding_model": "fake-embed", "embedding_dimensions": dimension}
    for verb in ("status", "switch"):
        run(talked, verb)
        answer = talked.http.post("/api/admin/eval", json={"cases": [case_of(talked)], "compare": other})
        assert answer.status_code == 200, answer.text
        assert answer.json()["compared"]["R@25"] == 100
        assert points(talked)[0] == points(talked)[1] > 0


def test_an_embedder_that_an_evaluation_has_open_is_not_prepared(talked: Service, fake: FakeOpenAI) -> None:
    def hang_at_many(body: Json) -> None:
        if len(body["input"]) > 4:
            fake.hang()

    fake.on_embeddings = hang_at_many
    (talked.folder / "b.env").write_text("EMBEDDING_MODEL=fake-embed\n")
    (talked.folder / "cases.jsonl").write_text(json.dumps(case_of(talked)))
    command = recollecting(talked, "eval", "cases.jsonl", "--compare", "b.env")
    until(lambda: any(len(body["input"]) > 4 for body in fake.embeddings))
    same = {"model": "fake-embed", "dimensions": fake.dimensions}
    refused(talked.http.post(f"{STATUS}/prepare", json=same), 409, "embedder_conflict")
    assert talked.get(STATUS)["other"] is None
    fake.on_embeddings = None
    fake.release()
    told, shown = command.communicate()
    assert command.returncode == 0, told + shown
    assert "fake-embed is ready" in run(talked, "prepare", "fake-embed")


def test_the_configured_embedder_is_compared_with_the_one_that_serves_in_its_place(talked: Service) -> None:
    case = case_of(talked)
    alike = [similarity(talked, case)]
    run(talked, "prepare", "fake-embed")
    run(talked, "switch")
    alike.append(similarity(talked, case))
    assert alike[0] != alike[1]
    compare = {"embedding_model": "lexical", "memory_score_threshold": sum(alike) / 2}
    answer = talked.http.post("/api/admin/eval", json={"cases": [case], "compare": compare}).json()
    assert (answer["compared"]["R@25"] == 100) is (alike[0] > alike[1])


def case_of(running: Service) -> Json:
    message = running.get("/api/threads/t1/messages", user_id="ada")["items"][0]
    return {"user_id": "ada", "query": f"When was it? {message['content']}", "expect": [message["id"]]}


def similarity(running: Service, case: Json) -> float:
    """Return how similar the case's query is to what it expects, for the embedder that serves."""
    body = {"user_id": "ada", "query": case["query"], "top_k": 50, "score_threshold": -1.0}
    hits = running.http.post("/api/memory/search", json=body).json()["hits"]
    return next(hit["similarity"] for hit in hits if hit["id"] in case["expect"])
