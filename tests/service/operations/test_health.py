from contextlib import ExitStack
from pathlib import Path

from recollect.api.version import VERSION
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, free_port, model_settings, service
from tests.service.support.shapes import refused

KEY, PASSWORD, VECTOR_KEY = "sk-very-secret-key", "mongo-pass-word", "qdrant-key-secret"


def test_health_says_what_runs(offline: Service) -> None:
    health = offline.get("/health")
    assert set(health) == {"status", "version", "backends", "models", "warnings", "file_reader"}
    assert health["warnings"] == []
    assert (health["status"], health["version"]) == ("ok", VERSION)
    assert health["backends"] == {"documents": "sqlite", "index": "qdrant-edge"}
    models = health["models"]
    assert (models.pop("chat"), models.pop("extraction")) == ("offline", "offline")
    assert models.pop("embedder").startswith("lexical")
    assert models == {}
    walls = health["file_reader"]
    assert {*walls["in_force"], *walls["missing"]} == {
        *("namespaces", "privileges", "landlock", "rlimits", "seccomp", "audit")
    }
    assert "audit" in walls["in_force"]
    assert offline.get("/health/ready") == {"status": "ready", "down": []}


def test_the_start_log_says_that_it_is_offline(offline: Service) -> None:
    assert "offline model answers by plain rules" in offline.log


def test_health_names_the_models(served: Service) -> None:
    models = served.get("/health")["models"]
    assert models == {"chat": "fake-chat", "extraction": "fake-chat", "embedder": "fake-embed"}


def test_dead_backends_are_named_and_no_secret_is_told(tmp_path: Path) -> None:
    with FakeOpenAI() as fake:
        settings = model_settings(
            fake.url,
            OPENAI_API_KEY=KEY,
            EMBEDDING_MODEL="fake-embed",
            EMBEDDING_DIMENSIONS="64",
            MONGODB_URL=f"mongodb://root:{PASSWORD}@127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=200",
            QDRANT_URL=f"http://127.0.0.1:{free_port()}",
            QDRANT_API_KEY=VECTOR_KEY,
        )
        with service(tmp_path, **settings) as running:
            health = running.http.get("/health")
            assert health.json()["backends"] == {"documents": "mongodb", "index": "qdrant"}
            ready = running.http.get("/health/ready")
            assert (ready.status_code, ready.json()) == (503, {"status": "down", "down": ["documents", "index"]})
            body = {"user_id": "ada", "thread_id": "t1", "message": "Hello."}
            answers = [running.http.post("/api/agent", json=body | {"stream": stream}) for stream in (False, True)]
            answers += [running.http.get("/api/users/ada/facts"), running.http.get("/api/turns/x?user_id=ada")]
            for answer in answers:
                assert refused(answer, 503, "store_unavailable")["turn_id"] is None
            assert fake.chats == []
            told = [health.text, ready.text, running.log, *(answer.text for answer in answers)]
        assert not [text for text in told for secret in (KEY, PASSWORD, VECTOR_KEY) if secret in text]


def test_a_dead_model_server_is_named(tmp_path: Path) -> None:
    with ExitStack() as closing:
        with FakeOpenAI() as fake:
            settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed")
            running = closing.enter_context(service(tmp_path, **settings))
            assert running.http.get("/health/ready").status_code == 200
        ready = running.http.get("/health/ready")
        assert (ready.status_code, ready.json()) == (503, {"status": "down", "down": ["chat", "embedder"]})
        assert running.http.get("/health").status_code == 200
