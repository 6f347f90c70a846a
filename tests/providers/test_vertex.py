"""Checks PROVIDER=vertex, and the embeddings of Gemini, with Google's own client against a scripted endpoint."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from recollect.memory.ports.chat_model import ChatRequest, Usage
from recollect.memory.providers.catalog import open_chat_model, open_embedder
from recollect.memory.providers.probe import check_models
from recollect.memory.values.errors import ConfigurationError, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI

pytest.importorskip("langchain_google_genai", reason="the extra `vertex` is not installed")

HI = ChatRequest([{"role": "user", "content": "Hi"}])
ANSWER: dict[str, Any] = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}],
    "modelVersion": "gemini-some-1",
    "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
}


def answering(body: dict[str, Any]) -> dict[str, Any]:
    """Answer as Vertex AI and Gemini do: a chat, one text's vector, or those of several."""
    if "contents" in body:
        return ANSWER
    if "instances" in body:
        vector = {"embeddings": {"values": [3.0, 4.0], "statistics": {"token_count": 1, "truncated": False}}}
        return {"predictions": [vector] * len(body["instances"])}
    if "requests" in body:
        return {"embeddings": [{"values": [3.0, 4.0]}] * len(body["requests"])}
    return {"access_token": "google-token", "expires_in": 3600, "token_type": "Bearer"}


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture
def vertex(fake: FakeOpenAI, tmp_path: Path, private_key: str) -> MemoryConfig:
    base = fake.url.removesuffix("/v1")
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "1",
        "private_key": private_key,
        "client_email": "me@my-project.iam.gserviceaccount.com",
        "token_uri": f"{base}/token",
    }
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(account), encoding="utf-8")
    return MemoryConfig(
        provider="vertex",
        base_url=base,
        google_cloud_project="my-project",
        google_cloud_location="europe-west4",
        google_application_credentials=path,
        chat_model="gemini-some",
        embedding_model="gemini-embedding-001",
        chat_timeout_seconds=5.0,
        embedding_timeout_seconds=5.0,
    )


@pytest.fixture
def asked(fake: FakeOpenAI) -> Callable[[], list[tuple[str, str | None]]]:
    """Return the paths and credentials of what the models were asked, without the requests for tokens."""

    def found() -> list[tuple[str, str | None]]:
        items = [item for item in fake.requests if item.path != "/token"]
        return [(item.path, item.headers.get("authorization") or item.headers.get("x-goog-api-key")) for item in items]

    return found


async def test_chat_and_embeddings_ask_the_project_with_its_credentials(
    fake: FakeOpenAI, vertex: MemoryConfig, asked: Callable[[], list[tuple[str, str | None]]]
) -> None:
    fake.on_other = answering
    async with open_chat_model(vertex) as chat, open_embedder(vertex) as embedder:
        reply = await chat.complete(HI)
        assert await embedder.embed_query("Hi") == pytest.approx([0.6, 0.8])
        assert len(await embedder.embed_documents(["a", "b"])) == 2
    assert (reply.text, reply.usage, reply.model) == ("Hello.", Usage(7, 3), "gemini-some-1")
    place = "/v1beta1/projects/my-project/locations/europe-west4/publishers/google/models"
    assert asked()[0] == (f"{place}/gemini-some:generateContent", "Bearer google-token")
    assert {who for _, who in asked()} == {"Bearer google-token"}
    assert {path for path, _ in asked()[1:]} == {f"{place}/gemini-embedding-001:predict"}


async def test_gemini_embeds_with_its_own_key(
    fake: FakeOpenAI, asked: Callable[[], list[tuple[str, str | None]]]
) -> None:
    fake.on_other = answering
    config = MemoryConfig(
        provider="gemini",
        api_key="gemini-key",
        base_url=fake.url.removesuffix("/v1"),
        chat_model="gemini-some",
        embedding_dimensions=2,
    )
    async with open_embedder(config) as embedder:
        assert embedder.model == "gemini-embedding-001"
        await embedder.embed_query("Hi")
        await embedder.embed_documents(["a", "b"])
    assert {who for _, who in asked()} == {"gemini-key"}
    (one, *_) = fake.requests[0].body["requests"]
    assert (one["taskType"], one["outputDimensionality"]) == ("RETRIEVAL_QUERY", 2)
    assert fake.requests[1].body["requests"][0]["taskType"] == "RETRIEVAL_DOCUMENT"


async def test_a_refusal_is_read_and_names_the_setting(fake: FakeOpenAI, vertex: MemoryConfig) -> None:
    fake.on_other = answering
    fake.fail(403, times=-1, path="/projects")
    with pytest.raises(ConfigurationError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        await check_models(vertex)
    async with open_embedder(vertex) as embedder:
        with pytest.raises(ModelUnavailable, match="GOOGLE_APPLICATION_CREDENTIALS") as caught:
            await embedder.embed_query("Hi")
        assert not caught.value.outage
    fake.recover()
    fake.fail(404, times=-1, path="/projects")
    with pytest.raises(ConfigurationError, match=r"CHAT_MODEL|EMBEDDING_MODEL"):
        await check_models(vertex)


async def test_a_file_without_credentials_stops_the_start(vertex: MemoryConfig, tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text("{}", encoding="utf-8")
    for path in (empty, tmp_path / "none.json"):
        with pytest.raises(ConfigurationError, match="GOOGLE_APPLICATION_CREDENTIALS"):
            await open_chat_model(vertex.replace(google_application_credentials=path)).__aenter__()


async def test_a_missing_package_names_the_extra(vertex: MemoryConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_google_genai", None)
    for opened in (open_chat_model(vertex), open_embedder(vertex)):
        with pytest.raises(ConfigurationError, match=r"pip install \"recollect\[vertex\]\""):
            await opened.__aenter__()
