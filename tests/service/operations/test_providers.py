"""Checks that a running service asks each role's own provider, and says what its models fall back to."""

from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service

FIGURE = "of ten memories and six paraphrased questions it finds one, where a small local model finds six"
MODULE = """
from langchain_core.embeddings import DeterministicFakeEmbedding

class Mine(DeterministicFakeEmbedding):
    model: str = "mine-v1"

embedder = Mine(size=9)
"""


def test_three_roles_at_three_servers_with_three_keys(tmp_path: Path) -> None:
    with FakeOpenAI() as chat, FakeOpenAI() as extraction, FakeOpenAI() as embedding:
        settings = {
            "PROVIDER": "groq",
            "OPENAI_BASE_URL": chat.url,
            "GROQ_API_KEY": "key-of-the-chat",
            "CHAT_MODEL": "fake-chat",
            "EXTRACTION_BASE_URL": extraction.url,
            "EXTRACTION_API_KEY": "key-of-the-extraction",
            "EXTRACTION_MODEL": "fake-chat",
            "EMBEDDING_PROVIDER": "together",
            "EMBEDDING_BASE_URL": embedding.url,
            "TOGETHER_API_KEY": "key-of-the-embeddings",
            "EMBEDDING_MODEL": "fake-embed",
            "OPENAI_API_KEY": "key-of-nobody",
        }
        with service(tmp_path, **settings) as running:
            assert running.get("/health")["warnings"] == []
            running.turn("I live in Paris and work as a nurse.", wait_for_memory=True)
            assert running.get("/health/ready")["down"] == []
            log = running.log
        sent = {
            server: {item.headers["authorization"] for item in server.requests}
            for server in (chat, extraction, embedding)
        }
        assert sent == {
            chat: {"Bearer key-of-the-chat"},
            extraction: {"Bearer key-of-the-extraction"},
            embedding: {"Bearer key-of-the-embeddings"},
        }
        assert (len(chat.extractions), len(extraction.extractions)) == (0, 1)
        assert embedding.embeddings
        assert not chat.embeddings
    assert "key-of" not in log


def test_a_fallback_is_said_at_the_start_and_by_health(tmp_path: Path) -> None:
    with FakeOpenAI() as fake, service(tmp_path, **model_settings(fake.url)) as running:
        health = running.get("/health")
        (sentence,) = health["warnings"]
        assert FIGURE in sentence
        assert health["models"]["embedder"].startswith("lexical")
        (line,) = [line for line in running.log.splitlines() if "action=model_fallback" in line]
        assert "WARNING" in line
        assert FIGURE in line


def test_an_embedder_of_one_s_own_is_loaded_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "my_embedder.py").write_text(MODULE, encoding="utf-8")
    settings = {"EMBEDDER": "my_embedder:embedder", "EMBEDDING_PROVIDER": "unheard-of", "PYTHONSAFEPATH": "1"}
    with service(tmp_path, **settings) as running:
        assert running.get("/health")["models"]["embedder"] == "mine-v1"
        running.turn("My name is Ada.", wait_for_memory=True)
        found = list((running.data_dir / "index").iterdir())
    assert any("mine-v1" in item.name and "-9" in item.name for item in found)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"EMBEDDER": "nowhere:embedder"}, "EMBEDDER"),
        ({"EMBEDDER": "nowhere"}, "EMBEDDER"),
        ({"EXTRACTION_PROVIDER": "nobody"}, "EXTRACTION_PROVIDER"),
        ({"PROVIDER": "azure", "AZURE_OPENAI_API_KEY": "hidden"}, "AZURE_OPENAI_API_VERSION"),
    ],
)
def test_a_wrong_value_stops_the_start(tmp_path: Path, settings: dict[str, str], named: str) -> None:
    starting = Service(tmp_path, **settings)
    starting.start(wait=False)
    assert starting.process is not None
    assert starting.process.wait(20) == 2
    assert named in starting.log
    assert "hidden" not in starting.log
