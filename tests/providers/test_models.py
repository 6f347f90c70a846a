"""Which models a provider says it serves."""

import pytest

from recollect.memory.providers.catalog import open_chat_model
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI


def configured(fake: FakeOpenAI, model: str = "fake-chat") -> MemoryConfig:
    return MemoryConfig(base_url=fake.url, api_key="own-key", chat_model=model, chat_timeout_seconds=5)


def asked(fake: FakeOpenAI) -> list[str]:
    """Return the keys that asked for the list."""
    return [request.headers["authorization"] for request in fake.requests if request.path.endswith("/models")]


async def test_the_configured_one_comes_first_and_the_list_is_asked_for_once(fake: FakeOpenAI) -> None:
    fake.models = ("a", "fake-chat", "b")
    async with open_chat_model(configured(fake)) as chat:
        assert await chat.models() == ["fake-chat", "a", "b"]
        fake.models = ()
        assert await chat.models() == ["fake-chat", "a", "b"]
        assert asked(fake) == ["Bearer own-key"]
        assert await chat.models(api_key="other") == ["fake-chat"]
        assert await chat.models(api_key="other") == ["fake-chat"]
    assert asked(fake) == ["Bearer own-key", "Bearer other"]


async def test_a_server_that_keeps_no_list_has_the_configured_one(fake: FakeOpenAI) -> None:
    fake.models = None
    async with open_chat_model(configured(fake)) as chat:
        assert await chat.models() == ["fake-chat"]
    fake.garbage(times=-1, path="/models")
    async with open_chat_model(configured(fake)) as chat:
        assert await chat.models() == ["fake-chat"]


@pytest.mark.parametrize(("status", "outage"), [(401, False), (403, False), (429, True), (503, True)])
async def test_a_refusal_is_told_and_not_kept(fake: FakeOpenAI, status: int, outage: bool) -> None:
    async with open_chat_model(configured(fake)) as chat:
        fake.fail(status, path="/models")
        with pytest.raises(ModelUnavailable) as raised:
            await chat.models()
        assert (raised.value.status, raised.value.outage) == (status, outage)
        assert await chat.models() == ["fake-chat", "fake-embed"]


async def test_it_waits_two_seconds_at_most(fake: FakeOpenAI) -> None:
    async with open_chat_model(configured(fake)) as chat:
        fake.hang()
        with pytest.raises(ModelTimeout):
            await chat.models()
        fake.release()
    async with open_chat_model(MemoryConfig(base_url="http://127.0.0.1:1/v1", chat_model="x")) as nowhere:
        with pytest.raises(ModelUnavailable):
            await nowhere.models()


async def test_the_offline_model_is_alone() -> None:
    async with open_chat_model(MemoryConfig()) as chat:
        assert await chat.models() == ["offline"]
