from collections.abc import AsyncIterator, Iterator

import pytest

from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.providers.catalog import open_chat_model
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def config(fake: FakeOpenAI) -> MemoryConfig:
    return MemoryConfig(
        base_url=fake.url, chat_model="fake-chat", embedding_model="fake-embed", chat_timeout_seconds=5.0
    )


@pytest.fixture
async def chat(config: MemoryConfig) -> AsyncIterator[ChatModel]:
    async with open_chat_model(config) as model:
        yield model
