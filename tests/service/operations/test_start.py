"""How a service starts, and what stops a start."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.openai_answers import extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.nursery import nursery
from tests.service.support.running import PROJECT, Service, free_port, model_settings, service, until
from tests.service.support.scripts import learning, posting, texts
from tests.service.support.stopped_start import stopped_start

NOWHERE = "http://127.0.0.1:1"
SECRET = "sk-very-secret-hunter2"
HEAVY = (
    "aiohttp",
    "aiosqlite",
    "fastembed",
    "httpx",
    "jinja2",
    "langchain_core",
    "langchain_openai",
    "langgraph",
    "langsmith",
    "mcp",
    "numpy",
    "onnxruntime",
    "openai",
    "opentelemetry.sdk",
    "prompt_toolkit",
    "pymongo",
    "pypdf",
    "qdrant_client",
    "qdrant_edge",
    "recollect.api.schemas.answers",
    "recollect.memory.learning.proof.claim",
    "recollect.memory.providers.offline",
    "rich",
)
"""Modules that the application imports when they are chosen, used or, as the graph's, beside the start."""


def test_an_offline_start_says_so_and_is_quick(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    starting = Service(tmp_path)
    starting.executed = True
    nursery()  # which is not a part of the start
    begun = time.monotonic()
    with starting as running:
        seconds = time.monotonic() - begun
        record_property("ready_seconds", seconds)
        sys.stderr.write(f"\nready after {seconds:.2f} s\n")
        assert seconds < 15, "3 s on a machine with nothing else to do"
        assert "action=offline_model" in running.log
        assert "offline" in running.log
        health = running.get("/health")
        assert health["models"]["chat"] == "offline"
        assert health["backends"] == {"documents": "sqlite", "index": "qdrant-edge"}
        assert running.get("/health/ready") == {"status": "ready", "down": []}


def test_importing_the_application_opens_nothing(tmp_path: Path) -> None:
    names = ", ".join(f"recollect.api.{name}" for name in ("app", "server", "cli.main", "cli.serving"))
    program = f"import json, sys, {names}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert set(HEAVY) & set(json.loads(done.stdout)) == set()
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_second_process_on_the_same_data_is_told_of_the_first(tmp_path: Path) -> None:
    with Service(tmp_path) as running:
        (tmp_path / "second").mkdir()
        said = stopped_start(tmp_path / "second", DATA_DIR=str(running.data_dir))
        assert running.process is not None
        assert f"in use by process {running.process.pid} at {running.url}" in said
        assert running.turn("Still here?")["reply"]


def test_a_busy_port_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = stopped_start(tmp_path, PORT=str(port))
    assert f"Cannot listen on 127.0.0.1:{port}" in said
    assert "set another PORT" in said
    assert not (tmp_path / "data").exists(), "nothing was opened"


def test_of_two_starts_at_once_on_one_port_one_is_refused(tmp_path: Path) -> None:
    port = free_port()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with ExitStack() as stack:
        both = [Service(tmp_path / name, port=port) for name in ("one", "two")]
        for each in both:
            stack.push(each)
            each.start(wait=False)
        until(lambda: any(map(has_ended, both)))
        (refused,) = filter(has_ended, both)
        (serving,) = (each for each in both if each is not refused)
        serving.wait_until_up()
        assert f"Cannot listen on 127.0.0.1:{port}" in refused.log
        assert serving.turn("Hello.")["reply"]


def has_ended(started: Service) -> bool:
    return started.process is not None and started.process.poll() is not None


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"PROVIDER": "nobody"}, "PROVIDER"),
        ({"PROVIDER": "groq", "CHAT_MODEL": "m"}, "GROQ_API_KEY"),
        ({"OPENAI_BASE_URL": NOWHERE}, "CHAT_MODEL"),
        ({"EMBEDDING_MODEL": "fastembed:any", "EMBEDDING_MODEL_PATH": "/nowhere"}, "EMBEDDING_MODEL_PATH"),
        ({"EMBEDDING_MODEL": "text-embedding-3-small"}, "EMBEDDING_MODEL"),
        ({"RERANKER": "fastembed:no-such-model"}, "RERANKER"),
        ({"RERANKER_PATH": "/nowhere"}, "RERANKER_PATH"),
        ({"EMBEDDING_DIMENSIONS": "7"}, "EMBEDDING_DIMENSIONS"),
        ({"EMBEDDING_DIMENSIONS": "none"}, "EMBEDDING_DIMENSIONS"),
        ({"AGENT": "nowhere.at_all:agent"}, "AGENT"),
        ({"AGENT": "no colon"}, "AGENT"),
        ({"AGENT": "json:loads"}, "AGENT"),
        ({"SYSTEM_PROMPT_FILE": "/nowhere.txt"}, "SYSTEM_PROMPT_FILE"),
        ({"PORT": "abc"}, "PORT"),
        ({"PORT": "70000"}, "PORT"),
        ({"HOST": "not a host"}, "HOST"),
        ({"MONGODB_URL": f"http://user:{SECRET}@127.0.0.1"}, "MONGODB_URL"),
        ({"DATA_DIR": "/dev/null/data"}, "DATA_DIR"),
        ({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
        ({"SHUTDOWN_SECONDS": "-1"}, "SHUTDOWN_SECONDS"),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named(tmp_path: Path, settings: dict[str, str], named: str) -> None:
    said = stopped_start(tmp_path, **settings)
    assert named in said
    assert len(said.strip().splitlines()) == 1
    assert SECRET not in said


def test_a_key_that_the_provider_refuses_stops_the_start(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.fail(401, times=-1)
    said = stopped_start(tmp_path, **model_settings(fake.url, OPENAI_API_KEY=SECRET))
    assert "OPENAI_API_KEY" in said
    assert SECRET not in said


@pytest.mark.parametrize("lists_models", [True, False])
def test_a_model_that_the_provider_does_not_know_stops_the_start(
    tmp_path: Path, fake: FakeOpenAI, lists_models: bool
) -> None:
    if not lists_models:
        fake.models = None
    fake.fail(404, times=-1, path="chat")
    said = stopped_start(tmp_path, **model_settings(fake.url, CHAT_MODEL="no-such-model"))
    assert "CHAT_MODEL" in said
    assert fake.chats[-1]["max_tokens"] == 1


def test_a_server_without_a_list_of_models_is_asked_for_one_token(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.models = None
    with service(tmp_path, **model_settings(fake.url)) as running:
        assert [body["max_tokens"] for body in fake.chats] == [1]
        assert running.turn("Hello.")["reply"] == "All right."


def test_dimensions_that_contradict_the_model_stop_the_start(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.dimensions = 64
    fake.models = ("fake-chat",)  # Then the embedding model itself is asked.
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed", EMBEDDING_DIMENSIONS="32")
    fake.on_embeddings = lambda body: {"data": [{"index": 0, "embedding": [0.1] * 64}], "model": "fake-embed"}
    said = stopped_start(tmp_path, **settings)
    assert "EMBEDDING_DIMENSIONS" in said


@pytest.mark.parametrize(
    ("settings", "down"),
    [
        (model_settings(f"{NOWHERE}/v1"), ["chat"]),
        ({"MONGODB_URL": "mongodb://127.0.0.1:1"}, ["documents"]),
        ({"QDRANT_URL": NOWHERE, "QDRANT_GRPC_PORT": "1"}, ["index"]),
    ],
    ids=["provider", "mongodb", "qdrant"],
)
def test_what_cannot_be_reached_does_not_stop_the_start(
    tmp_path: Path, settings: dict[str, str], down: list[str]
) -> None:
    with service(tmp_path, **settings) as running:
        assert running.http.get("/health").status_code == 200
        ready = running.http.get("/health/ready")
        assert (ready.status_code, ready.json()["down"]) == (503, down)
        assert running.stop() == 0
        assert "Traceback" not in running.log


def test_without_the_document_store_nothing_is_asked_of_the_model(tmp_path: Path, fake: FakeOpenAI) -> None:
    url = f"mongodb://someone:{SECRET}@127.0.0.1:1/"
    with service(tmp_path, **model_settings(fake.url, MONGODB_URL=url)) as running:
        begun = time.monotonic()
        for waiting in [
            posting(running, "my pet is cat", user=f"user{stream}", stream=stream) for stream in (False, True)
        ]:
            answer = waiting.result(60)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_unavailable")
        assert time.monotonic() - begun < 25, "one time limit of the driver, and what a loaded machine adds"
        assert (fake.chats, fake.extractions, fake.embeddings) == ([], [], [])
        assert running.stop() == 0
        assert SECRET not in running.log
        assert "cat" not in running.log


def test_without_the_index_the_reply_is_normal_and_the_step_stays_pending(tmp_path: Path, fake: FakeOpenAI) -> None:
    fake.on_chat = learning
    settings = {"QDRANT_URL": NOWHERE, "QDRANT_GRPC_PORT": "1"}
    with service(tmp_path, **model_settings(fake.url, **settings)) as running:
        first = running.turn("my pet is cat")
        assert first["memory"]["degraded"] == [], "with nothing to search, nothing failed"
        second = running.turn("Which pet?", memory={"window": 0})
        assert (second["reply"], second["memory"]["hits"]) == ("All right.", [])
        assert second["memory"]["degraded"] == ["search_memories"]

        def learned() -> bool:
            update = running.get(f"/api/turns/{first['turn_id']}", user_id="ada")["memory"]["update"]
            assert update["status"] == "pending"
            return [change["key"] for change in update["changes"]] == ["pet"]

        until(learned)
        assert len(texts(running)) == 4
        assert running.stop() == 0
        assert not any(word in running.log for word in ("Which pet?", "my pet is cat"))
    with service(tmp_path, **model_settings(fake.url)) as running:  # With an index, the step is done.
        assert running.settled(first["turn_id"], seconds=60)["memory"]["update"]["status"] == "done"
        bodies = [body for body in fake.extractions if extraction_tool(body)]
        assert len(bodies) == 2, "no extraction is done twice"
