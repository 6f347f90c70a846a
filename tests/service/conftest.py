"""One offline service and one with a scripted model, shared by all tests here: each test has a user of its own."""

from collections.abc import Iterator
from uuid import uuid4

import openai
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.chats import Chats
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import learning


@pytest.fixture
def user() -> str:
    """Return a user whom no other test knows."""
    return f"u-{uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service without a configured model."""
    with service(tmp_path_factory.mktemp("offline")) as running:
        yield running


@pytest.fixture(scope="session")
def scripted_model() -> Iterator[FakeOpenAI]:
    """Yield the model server behind `served`; tests take `model`."""
    with FakeOpenAI() as fake:
        yield fake


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, scripted_model: FakeOpenAI) -> Iterator[Service]:
    """Yield a service whose chat model and embedder are `model`."""
    settings = model_settings(scripted_model.url, EMBEDDING_MODEL="fake-embed")
    with service(tmp_path_factory.mktemp("served"), **settings) as running:
        yield running


@pytest.fixture
def model(scripted_model: FakeOpenAI) -> Iterator[FakeOpenAI]:
    """Yield the model server with nothing scripted and nothing recorded."""
    scripted_model.requests.clear()
    yield scripted_model
    scripted_model.recover()
    scripted_model.on_chat = scripted_model.on_embeddings = None
    scripted_model.piece_seconds = scripted_model.chat_seconds = 0.0


@pytest.fixture(scope="session")
def openai_of_served(served: Service) -> Iterator[openai.OpenAI]:
    """OpenAI's own client of `served`; tests take `chats`."""
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture
def chats(openai_of_served: openai.OpenAI, model: FakeOpenAI, user: str) -> Chats:
    """`user` at OpenAI's client of `served`."""
    return Chats(openai_of_served, user)


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    """Yield a model server of the test's own, for services that it starts itself. It learns "my KEY is VALUE"."""
    with FakeOpenAI() as made:
        made.on_chat = learning
        yield made
        made.recover()
