import asyncio
import logging

import pytest

from recollect.memory.providers.probe import CHECK_SECONDS, check_models
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI


@pytest.fixture
def stated(config: MemoryConfig) -> MemoryConfig:
    return config.replace(embedding_dimensions=64)


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(getattr(record, "action", None)) for record in caplog.records if record.name.startswith("recollect.")]


def paths(fake: FakeOpenAI) -> list[str]:
    return sorted(item.path.removeprefix("/v1/") for item in fake.requests)


async def test_the_built_in_models_need_no_check() -> None:
    await check_models(MemoryConfig())


async def test_a_listed_model_is_not_asked(fake: FakeOpenAI, stated: MemoryConfig) -> None:
    await check_models(stated)
    assert paths(fake) == ["models"]


async def test_an_unknown_dimension_is_asked(fake: FakeOpenAI, config: MemoryConfig) -> None:
    await check_models(config)
    assert paths(fake) == ["embeddings", "models"]


@pytest.mark.parametrize("status", [403, 404, 405, 501])
async def test_without_a_list_each_model_is_asked_for_one_token(
    fake: FakeOpenAI, stated: MemoryConfig, status: int
) -> None:
    fake.fail(status, times=-1, path="models")
    await check_models(stated.replace(extraction_model="other, another"))
    assert paths(fake) == [*["chat/completions"] * 3, "embeddings", "models"]
    assert {body["max_tokens"] for body in fake.chats} == {1}
    assert {body["model"] for body in fake.chats} == {"fake-chat", "other", "another"}


@pytest.mark.parametrize(
    ("path", "setting"),
    [("models", "OPENAI_API_KEY"), ("chat", "OPENAI_API_KEY"), ("embeddings", "OPENAI_API_KEY")],
)
async def test_a_refused_key_stops_the_start(fake: FakeOpenAI, config: MemoryConfig, path: str, setting: str) -> None:
    fake.models = None
    fake.fail(401, times=-1, path=path)
    with pytest.raises(ConfigurationError, match=setting):
        await check_models(config)


async def test_a_preset_s_own_key_is_named(fake: FakeOpenAI, stated: MemoryConfig) -> None:
    fake.fail(401)
    with pytest.raises(ConfigurationError, match="MISTRAL_API_KEY"):
        await check_models(stated.replace(provider="mistral", api_key="k"))


@pytest.mark.parametrize(
    ("unknown", "setting"),
    [("nochat", "CHAT_MODEL"), ("noextract", "EXTRACTION_MODEL"), ("noembed", "EMBEDDING_MODEL")],
)
@pytest.mark.parametrize("listing", [True, False])
async def test_a_model_that_does_not_exist_stops_the_start(
    fake: FakeOpenAI, stated: MemoryConfig, unknown: str, setting: str, listing: bool
) -> None:
    fake.models = fake.models if listing else None
    fake.on_chat = fake.on_embeddings = lambda body: 404 if body["model"].startswith("no") else None
    names = {"nochat": "chat_model", "noextract": "extraction_model", "noembed": "embedding_model"}
    with pytest.raises(ConfigurationError, match=setting):
        await check_models(stated.replace(**{names[unknown]: unknown}))


async def test_each_of_several_extraction_models_has_to_exist(fake: FakeOpenAI, stated: MemoryConfig) -> None:
    fake.on_chat = lambda body: 404 if body["model"] == "gone" else None
    with pytest.raises(ConfigurationError, match="EXTRACTION_MODEL"):
        await check_models(stated.replace(extraction_model="fake-chat,gone"))
    assert [body["model"] for body in fake.chats] == ["gone"]


async def test_a_400_that_says_no_such_model_counts_too(fake: FakeOpenAI, stated: MemoryConfig) -> None:
    fake.on_chat = lambda body: {"status": 400, "error": {"code": "model_not_found"}, "choices": None}
    with pytest.raises(ConfigurationError, match="CHAT_MODEL"):
        await check_models(stated.replace(chat_model="x"))


async def test_vectors_of_another_length_stop_the_start(fake: FakeOpenAI, stated: MemoryConfig) -> None:
    fake.models = None
    with pytest.raises(ConfigurationError, match="EMBEDDING_DIMENSIONS"):
        await check_models(stated.replace(embedding_dimensions=100))
    await check_models(stated)


@pytest.mark.parametrize("status", [400, 422])
async def test_another_refusal_only_warns(
    fake: FakeOpenAI, stated: MemoryConfig, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    fake.on_chat = lambda body: status
    with caplog.at_level(logging.WARNING):
        await check_models(stated.replace(chat_model="unlisted"))
    assert actions(caplog) == ["model_unchecked"]


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("path", ["models", "chat"])
async def test_an_outage_does_not_stop_the_start(
    fake: FakeOpenAI, stated: MemoryConfig, caplog: pytest.LogCaptureFixture, status: int, path: str
) -> None:
    fake.fail(status, times=-1, path=path)
    with caplog.at_level(logging.WARNING):
        await check_models(stated.replace(chat_model="unlisted"))
    assert actions(caplog) == ["model_unreachable"]


async def test_nobody_at_the_address_does_not_stop_the_start(caplog: pytest.LogCaptureFixture) -> None:
    with FakeOpenAI() as gone:
        url = gone.url
    with caplog.at_level(logging.WARNING):
        await check_models(MemoryConfig(base_url=url, chat_model="m"))
    assert actions(caplog) == ["model_unreachable"]


async def test_the_checks_together_are_bounded(
    fake: FakeOpenAI, stated: MemoryConfig, caplog: pytest.LogCaptureFixture
) -> None:
    fake.models = None
    fake.hang()
    began = asyncio.get_running_loop().time()
    with caplog.at_level(logging.WARNING):
        await check_models(stated)
    assert asyncio.get_running_loop().time() - began < CHECK_SECONDS + 0.5
    assert actions(caplog) == ["model_unreachable"]


async def test_garbage_is_no_list(fake: FakeOpenAI, stated: MemoryConfig) -> None:
    fake.garbage(path="models")
    await check_models(stated)
    assert paths(fake) == ["chat/completions", "embeddings", "models"]


@pytest.mark.parametrize(
    ("provider", "status", "named"),
    [
        ("anthropic", 401, "ANTHROPIC_API_KEY"),
        ("anthropic", 404, "CHAT_MODEL"),
        ("gemini", 400, "GOOGLE_API_KEY"),
        ("gemini", 404, "CHAT_MODEL"),
    ],
)
async def test_native_providers_are_asked_for_the_model(
    fake: FakeOpenAI, provider: str, status: int, named: str
) -> None:
    base = fake.url.removesuffix("/v1")
    config = MemoryConfig(
        provider=provider, api_key="k", base_url=base, chat_model="some-model", embedding_model="lexical"
    )
    fake.fail(status)
    with pytest.raises(ConfigurationError, match=named):
        await check_models(config)
    fake.fail(503)
    await check_models(config)
    assert fake.requests[0].path in {"/v1/models/some-model", "/v1beta/models/some-model"}
    assert "k" in {fake.requests[0].headers.get("x-api-key"), fake.requests[0].headers.get("x-goog-api-key")}
