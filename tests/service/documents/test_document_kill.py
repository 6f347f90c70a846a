"""kill -9, outages and erasures while a document is made findable."""

import threading
import time
from pathlib import Path

import httpx
import pytest

from recollect.memory.documents.document_indexing import CUT_OFF_ANEW
from recollect.memory.index.indexing import EMBED_BATCH
from tests.fakes.openai_answers import Body
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.documents_of import add, ended, search
from tests.service.support.running import Service, model_settings, service, until

LONG = "\n\n".join(f"Chapter {number}. The keeper counts ships, number {number} of many." * 12 for number in range(200))


def settings(fake: FakeOpenAI) -> dict[str, str]:
    return model_settings(fake.url, EMBEDDING_MODEL="fake-embed")


def embedded(fake: FakeOpenAI) -> list[str]:
    """Return the passages that the embedder was asked for."""
    texts = [text for body in fake.embeddings for text in body["input"] if len(text) > 1]
    return [text for text in texts if "number" in text]


def assert_whole(running: Service, user: str = "ada") -> None:
    doctored = running.get("/api/admin/doctor")
    assert doctored["healthy"], doctored
    assert doctored["totals"]["pending"] == 0
    passages = sum(item["passages"] for item in running.get("/api/documents", user_id=user)["items"])
    assert doctored["totals"]["passages"] == doctored["totals"]["points"] == passages


def test_a_long_document_is_processing_and_goes_on_after_a_kill(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.embedding_seconds = 2.0
    with service(tmp_path, **settings(fake)) as running:
        answer = running.http.post("/api/documents", json={"user_id": "ada", "text": LONG, "source": "log"})
        assert answer.status_code == 202
        document = answer.json()
        assert document["status"] == "processing"
        assert 0 < document["progress"] < 1
        asked = len(embedded(fake))
        running.kill()
        fake.embedding_seconds = 0.0
        running.start()
        done = ended(running, "ada", document["id"])
        assert (done["status"], done["progress"], done["passages"]) == ("done", 1.0, document["passages"])
        # Passages that had their points are not embedded again; one batch was on its way when it was killed.
        assert document["passages"] <= len(embedded(fake)) <= document["passages"] + EMBED_BATCH
        assert asked < document["passages"]
        assert "Chapter 199" in search(running, "ada", "Chapter 199")[0]["content"]
        assert_whole(running)


@pytest.mark.slow
def test_a_kill_while_new_content_comes_leaves_the_old_or_the_new(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **settings(fake)) as running:
        first = add(running, "ada", LONG, source="log")
        changed = LONG.replace("ships", "boats")
        for pause in (0.0, 0.05, 0.2):
            sending = threading.Thread(target=send, args=(running.url, changed))
            sending.start()
            time.sleep(pause)  # a kill at several moments of one upload: there is no condition to wait for
            running.kill()
            sending.join()
            running.start()
            document = ended(running, "ada", first["id"])
            # Cut off amid its passages, the new content is given up, and the old one stays.
            assert document["status"] == "done" or document["error"] == CUT_OFF_ANEW, document
            assert_whole(running)
            hit = search(running, "ada", "boats ships", top_k=1)[0]
            assert ("boats" in hit["content"]) != ("ships" in hit["content"])


def send(url: str, text: str) -> None:
    try:
        httpx.post(f"{url}/api/documents", json={"user_id": "ada", "text": text, "source": "log"}, timeout=30)
    except httpx.TransportError:
        return


@pytest.mark.slow
def test_an_outage_delays_a_document_and_a_refusal_fails_it(tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **settings(fake)) as running:
        add(running, "ada", "The first document.")
        fake.fail(503, times=-1, path="embeddings")
        answer = running.http.post("/api/documents", json={"user_id": "ada", "text": "The lighthouse opens at nine."})
        assert (answer.status_code, answer.json()["progress"]) == (202, 0.0)
        fake.recover()
        assert ended(running, "ada", answer.json()["id"])["status"] == "done"

        def refuse(body: Body) -> int | None:
            return 400 if "poison" in str(body["input"]) else None

        fake.on_embeddings = refuse
        answer = running.http.post("/api/documents", json={"user_id": "ada", "text": "A poison.", "source": "p"})
        failed = ended(running, "ada", answer.json()["id"], seconds=60)
        assert failed["status"] == "failed"
        assert "could not be indexed" in failed["error"]
        assert search(running, "ada", "lighthouse", top_k=1)
        fake.on_embeddings = None
        again = add(running, "ada", "A poison.", source="p")
        assert (again["id"], again["status"], again["error"]) == (failed["id"], "done", None)
        assert_whole(running)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["document", "user"])
def test_a_document_that_is_deleted_or_erased_while_it_is_processed_stays_gone(
    tmp_path: Path, fake: FakeOpenAI, method: str
) -> None:
    with service(tmp_path, **settings(fake)) as running:
        add(running, "bob", "Bob's document.")
        fake.hang()
        answer = running.http.post("/api/documents", json={"user_id": "ada", "text": LONG})
        assert answer.status_code == 202
        path = f"/api/documents/{answer.json()['id']}" if method == "document" else "/api/users/ada"
        gone = running.http.delete(path, params={"user_id": "ada"} if method == "document" else {})
        assert gone.status_code in (200, 204), gone.text
        fake.release()
        add(running, "bob", "Another one of Bob's.")
        assert running.get("/api/documents", user_id="ada")["items"] == []
        assert search(running, "ada", "ships") == []
        assert_whole(running, "bob")


@pytest.mark.slow
def test_a_deletion_that_is_killed_is_ended_after_the_start(tmp_path: Path) -> None:
    with service(tmp_path, SWEEP_SECONDS="0.2") as running:
        made = add(running, "ada", LONG)
        path, of_user = f"/api/documents/{made['id']}", {"user_id": "ada"}
        deleting = threading.Thread(target=delete, args=(f"{running.url}{path}",))
        deleting.start()
        time.sleep(0.03)  # a kill at some moment of it: there is no condition to wait for
        running.kill()
        deleting.join()
        running.start()
        if running.http.get(path, params=of_user).json().get("status") == "done":  # it came before the first write
            assert running.http.delete(path, params=of_user).status_code == 204
        until(lambda: running.http.get(path, params=of_user).status_code == 404)
        until(lambda: running.get("/api/admin/doctor")["healthy"])
        assert_whole(running)


def delete(url: str) -> None:
    try:
        httpx.delete(url, params={"user_id": "ada"}, timeout=30)
    except httpx.TransportError:
        return
