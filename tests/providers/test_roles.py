"""Checks which provider each role asks, and that a key goes to its own server alone."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from recollect.memory.ports.chat_model import ChatRequest
from recollect.memory.providers.catalog import open_chat_model, open_embedder, open_extraction_chats
from recollect.memory.providers.endpoint import Endpoint, embedding_model_name
from recollect.memory.providers.fallbacks import warnings
from recollect.memory.providers.presets import PRESETS
from recollect.memory.providers.probe import check_models
from recollect.memory.providers.roles import embedding_endpoint, endpoint, extraction_endpoint
from recollect.memory.values.errors import ConfigurationError, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from recollect.settings import Settings
from tests.fakes.openai_server import FakeOpenAI

HI = ChatRequest([{"role": "user", "content": "Hi"}])


def configured(**settings: str) -> MemoryConfig:
    """Return the configuration of these settings, without those of the environment's `.env`."""
    return Settings(_env_file=None, **settings).memory()  # type: ignore[call-arg]


def asked(source: Endpoint | None) -> tuple[str, str, str]:
    assert source is not None
    return source.provider, source.base_url, source.api_key


@pytest.fixture
def servers() -> Iterator[list[FakeOpenAI]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FakeOpenAI()) for _ in range(3)]


def keys(server: FakeOpenAI) -> set[str]:
    return {item.headers["authorization"].removeprefix("Bearer ") for item in server.requests}


async def test_each_key_goes_to_its_own_server_alone(servers: list[FakeOpenAI]) -> None:
    chat, extraction, embedding = servers
    config = configured(
        provider="groq",
        openai_base_url=chat.url,
        groq_api_key="groq-key",
        chat_model="fake-chat",
        extraction_provider="mistral",
        extraction_base_url=extraction.url,
        mistral_api_key="mistral-key",
        extraction_model="fake-chat",
        embedding_base_url=embedding.url,
        embedding_model="fake-embed",
        openai_api_key="openai-key",
    )
    await check_models(config)
    async with (
        open_chat_model(config) as answers,
        open_extraction_chats(config) as extracts,
        open_embedder(config) as embeds,
    ):
        await answers.complete(HI)
        await extracts.first.complete(HI)
        await embeds.embed_query("Hi")
        await embeds.ping()
    assert keys(chat) == {"groq-key"}
    assert keys(extraction) == {"mistral-key"}
    assert keys(embedding) == {"none-needed"}
    assert len(chat.chats) == len(extraction.chats) == 1
    assert not chat.embeddings


async def test_an_own_key_goes_before_the_provider_s_own(servers: list[FakeOpenAI]) -> None:
    chat, _, embedding = servers
    config = configured(
        openai_base_url=chat.url,
        openai_api_key="chat-key",
        chat_model="fake-chat",
        embedding_base_url=embedding.url,
        embedding_api_key="embedding-key",
        embedding_model="fake-embed",
        extraction_api_key="extraction-key",
    )
    async with open_extraction_chats(config) as extracts, open_embedder(config) as embeds:
        await extracts.first.complete(HI)
        await embeds.embed_query("Hi")
    assert (keys(chat), keys(embedding)) == ({"extraction-key"}, {"embedding-key"})


def test_anthropic_embeds_with_openai() -> None:
    config = configured(
        provider="anthropic",
        anthropic_api_key="a",
        chat_model="claude",
        embedding_provider="openai",
        openai_api_key="o",
    )
    assert asked(endpoint(config)) == ("anthropic", "https://api.anthropic.com", "a")
    assert asked(extraction_endpoint(config)) == asked(endpoint(config))
    assert asked(embedding_endpoint(config)) == ("openai", "https://api.openai.com/v1", "o")
    assert embedding_model_name(config, embedding_endpoint(config)) == "text-embedding-3-small"
    assert warnings(config) == ()


def test_groq_embeds_on_this_machine() -> None:
    config = configured(
        provider="groq",
        groq_api_key="g",
        chat_model="llama",
        embedding_provider="ollama",
        embedding_model="nomic-embed-text",
        openai_api_key="o",
    )
    assert asked(embedding_endpoint(config)) == ("ollama", "http://127.0.0.1:11434/v1", "none-needed")
    assert warnings(config) == ()


@pytest.mark.parametrize("name", [name for name, item in PRESETS.items() if item.base_url])
def test_the_embeddings_follow_where_the_chat_s_provider_has_a_default_and_else_fall_back_in_words(name: str) -> None:
    config = MemoryConfig(provider=name, api_key="k", chat_model="m")
    default = PRESETS[name].embedding_model
    assert embedding_model_name(config, embedding_endpoint(config)) == (default or "lexical")
    if default:
        assert warnings(config) == ()
        return
    (sentence,) = warnings(config)
    assert name in sentence
    assert "of ten memories and six paraphrased questions it finds one, where a small local model finds six" in sentence


def test_a_chosen_lexical_embedder_is_a_warning_too_except_without_a_chat_model() -> None:
    config = MemoryConfig(api_key="k", embedding_model="lexical")
    assert ["EMBEDDING_MODEL=lexical" in sentence for sentence in warnings(config)] == [True]
    assert warnings(MemoryConfig(embedding_model="lexical")) == ()
    assert warnings(MemoryConfig()) == ()
    assert warnings(config.replace(embedding_model="fastembed:BAAI/bge-small-en-v1.5")) == ()


def test_a_role_alone_has_a_provider_while_the_chat_is_built_in() -> None:
    config = configured(extraction_provider="openai", openai_base_url="", extraction_api_key="k")
    assert endpoint(config) is None
    assert asked(extraction_endpoint(config)) == ("openai", "https://api.openai.com/v1", "k")
    alone = MemoryConfig(embedding_api_key="k")
    assert asked(embedding_endpoint(alone)) == ("openai", "https://api.openai.com/v1", "k")


def test_the_same_server_by_its_address_has_the_same_key() -> None:
    box = "http://box:9000/v1"
    config = configured(openai_base_url=box, openai_api_key="box-key", chat_model="m", embedding_base_url=f"{box}/")
    assert asked(embedding_endpoint(config)) == ("openai", box, "box-key")
    openai = configured(
        provider="groq", groq_api_key="g", openai_api_key="o", embedding_base_url="https://api.openai.com/v1"
    )
    assert asked(embedding_endpoint(openai)) == ("openai", "https://api.openai.com/v1", "o")


def test_a_server_s_key_is_never_sent_to_openai() -> None:
    config = configured(openai_base_url="http://box/v1", openai_api_key="box-key", embedding_provider="openai")
    with pytest.raises(ConfigurationError, match="EMBEDDING_API_KEY"):
        embedding_endpoint(config)
    keyless = configured(provider="ollama", openai_api_key="openai-key")
    assert asked(endpoint(keyless))[2] == "none-needed"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"embedding_provider": "opnai"}, "EMBEDDING_PROVIDER"),
        ({"extraction_provider": "opnai"}, "EXTRACTION_PROVIDER"),
        ({"embedding_base_url": "box:80"}, "EMBEDDING_BASE_URL"),
        ({"extraction_base_url": "box:80"}, "EXTRACTION_BASE_URL"),
        ({"embedding_provider": "anthropic", "anthropic_api_key": "a"}, "EMBEDDING_PROVIDER"),
        ({"embedding_provider": "mistral"}, "EMBEDDING_API_KEY or MISTRAL_API_KEY"),
        ({"extraction_provider": "mistral", "mistral_api_key": "m"}, "EXTRACTION_MODEL"),
        ({"embedding_base_url": "http://box/v1"}, "EMBEDDING_MODEL"),
        ({"embedding_provider": "ollama"}, "EMBEDDING_MODEL"),
        ({"provider": "groq", "groq_api_key": "g", "embedding_model": "some-remote"}, "EMBEDDING_PROVIDER"),
        ({"provider": "vertex", "google_cloud_project": ""}, "GOOGLE_CLOUD_PROJECT"),
        ({"embedding_provider": "vertex", "google_cloud_project": "p", "embedding_api_key": "k"}, "EMBEDDING_API_KEY"),
        ({"provider": "bedrock"}, "AWS_REGION"),
        ({"provider": "bedrock", "aws_region": "r", "aws_access_key_id": "i"}, "AWS_SECRET_ACCESS_KEY"),
        ({"provider": "azure", "azure_openai_api_version": "v", "azure_openai_api_key": "k"}, "AZURE_OPENAI_ENDPOINT"),
        ({"provider": "azure", "azure_openai_endpoint": "http://a", "azure_openai_api_key": "k"}, "API_VERSION"),
        (
            {"provider": "azure", "azure_openai_endpoint": "http://a", "openai_api_version": "v"},
            "AZURE_OPENAI_AD_TOKEN",
        ),
        ({"provider": "azure", "azure_openai_endpoint": "a.com", "openai_api_version": "v"}, "AZURE_OPENAI_ENDPOINT"),
    ],
)
async def test_a_wrong_setting_stops_the_start_and_is_named(settings: dict[str, str], named: str) -> None:
    config = configured(**{"chat_model": "m", **settings})
    with pytest.raises(ConfigurationError, match=named):
        await check_models(config)


async def test_a_refusal_names_the_role_s_own_settings(servers: list[FakeOpenAI]) -> None:
    _, _, embedding = servers
    config = configured(embedding_base_url=embedding.url, embedding_api_key="k", embedding_model="gone")
    embedding.fail(401, times=-1)
    with pytest.raises(ConfigurationError, match="EMBEDDING_API_KEY"):
        await check_models(config)
    embedding.recover()
    embedding.on_embeddings = lambda body: 404
    with pytest.raises(ConfigurationError, match=r"EMBEDDING_MODEL .* EMBEDDING_BASE_URL"):
        await check_models(config)
    async with open_embedder(config) as embeds:
        with pytest.raises(ModelUnavailable, match=r"EMBEDDING_MODEL and EMBEDDING_BASE_URL"):
            await embeds.embed_query("Hi")
