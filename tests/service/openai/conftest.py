"""OpenAI's own client, for tests of its wire."""

import openai
import pytest

from tests.fakes.openai_server import FakeOpenAI


@pytest.fixture
def client(openai_of_served: openai.OpenAI, model: FakeOpenAI) -> openai.OpenAI:
    """OpenAI's client of `served`; nothing is scripted yet."""
    return openai_of_served
