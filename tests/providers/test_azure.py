"""Checks PROVIDER=azure against a scripted endpoint: paths, the API's version, and how it is told who asks."""

import json

import pytest

from recollect.memory.ports.chat_model import ChatReply, ChatRequest
from recollect.memory.providers.catalog import open_chat_model, open_embedder
from recollect.memory.providers.probe import check_models
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI
from tests.providers.requests import EXTRACT

HI = ChatRequest([{"role": "user", "content": "Hi"}])


@pytest.fixture
def azure(fake: FakeOpenAI) -> MemoryConfig:
    return MemoryConfig(
        provider="azure",
        azure_openai_endpoint=fake.url.removesuffix("/v1") + "/",
        azure_openai_api_version="2024-10-21",
        api_key="azure-key",
        chat_model="my-chat",
        embedding_model="my-embedder",
        chat_timeout_seconds=5.0,
    )


def paths(fake: FakeOpenAI) -> set[str]:
    return {item.path for item in fake.requests}


async def test_chat_and_embeddings_ask_their_deployments_with_the_key(fake: FakeOpenAI, azure: MemoryConfig) -> None:
    async with open_chat_model(azure) as chat, open_embedder(azure) as embedder:
        assert (await chat.complete(HI)).text == "All right."
        streamed = [piece async for piece in chat.stream(HI)]
        assert isinstance(streamed[-1], ChatReply)
        assert (await chat.complete(EXTRACT)).tool_calls
        assert len(await embedder.embed_query("Hi")) == await embedder.dimension()
        assert await chat.models() == ["my-chat"]
    assert paths(fake) == {
        "/openai/deployments/my-chat/chat/completions?api-version=2024-10-21",
        "/openai/deployments/my-embedder/embeddings?api-version=2024-10-21",
    }
    assert {item.headers.get("api-key") for item in fake.requests} == {"azure-key"}
    assert {item.headers.get("authorization") for item in fake.requests} == {None}


async def test_an_entra_token_stands_instead_of_a_key(fake: FakeOpenAI, azure: MemoryConfig) -> None:
    config = azure.replace(api_key=None, azure_openai_ad_token="entra-token")
    await check_models(config)
    async with open_chat_model(config) as chat:
        await chat.complete(HI)
    assert {item.headers.get("authorization") for item in fake.requests} == {"Bearer entra-token"}
    assert {item.headers.get("api-key") for item in fake.requests} == {None}


async def test_tokens_of_the_machine_s_identity_are_asked_for_once(
    fake: FakeOpenAI, azure: MemoryConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("azure.identity", reason="the extra `azure` is not installed")
    # As App Service has it: an address on the machine gives tokens.
    monkeypatch.setenv("IDENTITY_ENDPOINT", fake.url.removesuffix("/v1") + "/identity")
    monkeypatch.setenv("IDENTITY_HEADER", "secret-header")
    fake.on_other = lambda body: {
        "access_token": "fresh-token",
        "expires_on": "4102444800",
        "resource": "https://cognitiveservices.azure.com",
        "token_type": "Bearer",
    }
    async with open_chat_model(azure.replace(api_key=None, azure_openai_ad_token="default")) as chat:
        await chat.complete(HI)
        await chat.complete(HI)
    asked = [item for item in fake.requests if item.path.startswith("/identity")]
    chats = [item for item in fake.requests if "deployments" in item.path]
    assert [item.headers["x-identity-header"] for item in asked] == ["secret-header"]
    assert {item.headers.get("authorization") for item in chats} == {"Bearer fresh-token"}


async def test_the_check_asks_the_deployments_and_not_the_list(fake: FakeOpenAI, azure: MemoryConfig) -> None:
    fake.models = ["my-chat", "my-embedder"]
    fake.on_chat = lambda body: 404
    with pytest.raises(ConfigurationError, match=r"CHAT_MODEL .* AZURE_OPENAI_ENDPOINT"):
        await check_models(azure)
    fake.fail(401, times=-1)
    with pytest.raises(ConfigurationError, match="AZURE_OPENAI_API_KEY"):
        await check_models(azure)


async def test_another_role_s_azure_has_its_own_key(fake: FakeOpenAI, azure: MemoryConfig) -> None:
    config = azure.replace(
        provider=None,
        api_key=None,
        azure_openai_ad_token="entra-token",
        embedding_provider="azure",
        embedding_api_key="role-key",
    )
    async with open_embedder(config) as embedder:
        await embedder.embed_query("Hi")
    (item,) = fake.requests
    assert (item.headers.get("api-key"), item.headers.get("authorization")) == ("role-key", None)
    assert "role-key" not in json.dumps(item.body)
