"""kill -9 amid the deletion of a conversation: the same call ends it, or it is gone with all that it taught."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import httpx

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import model_settings, service, until
from tests.service.support.scripts import facts, texts

Json = dict[str, Any]
KEYS = ("city", "dog", "job", "tea", "car", "team", "boat", "bike", "song", "cake")


def test_a_killed_deletion_of_a_conversation_loses_nothing_by_halves(tmp_path: Path, fake: FakeOpenAI) -> None:
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed")
    own: Json = {"params": {"user": "ada"}}
    with service(tmp_path, **settings) as running:
        items = [{"role": "user", "content": f"Well, my {key} is {key.upper()}."} for key in KEYS]
        conversation: str = running.http.post("/v1/conversations", json={"items": items}, **own).json()["id"]
        running.turn("Well, my name is ADA.", thread="other")
        until(lambda: len(facts(running)) == len(KEYS) + 1)
        path = f"/v1/conversations/{conversation}"

        def ask() -> None:
            with contextlib.suppress(httpx.TransportError):
                httpx.delete(f"{running.url}{path}", timeout=60, **own)

        asking = threading.Thread(target=ask)
        asking.start()
        until(lambda: len(facts(running)) < len(KEYS))
        running.kill()
        asking.join(30)
        running.start()
        if running.http.get(path, **own).status_code == 200:
            assert len(texts(running, thread=conversation)) == len(KEYS), "its messages go at last"
            assert running.http.delete(path, **own).status_code == 200
        until(lambda: texts(running, thread=conversation) == [])
        assert running.http.get(path, **own).status_code == 404
        assert facts(running) == {"name": "ADA"}
        until(lambda: running.get("/api/admin/doctor")["healthy"])
