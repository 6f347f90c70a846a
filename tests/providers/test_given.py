"""Checks models that a program gives as objects: LangChain's, and Recollect's own ports."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from typing_extensions import override

from recollect.memory.mem_agent import MemoryAgent
from recollect.memory.ports.chat_model import ChatModel, ChatReply, ChatRequest
from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.catalog import open_chat_model, open_embedder
from recollect.memory.providers.fallbacks import warnings
from recollect.memory.values.errors import ConfigurationError, ModelTimeout, ModelUnavailable
from recollect.memory.values.given import GivenChat, GivenEmbeddings
from recollect.memory.values.mem_config import MemoryConfig


class Port(Embedder):
    """An embedder of somebody's own."""

    asked = 0

    @property
    @override
    def model(self) -> str:
        return "port-embedder"

    @property
    @override
    def embeds_alike(self) -> bool:
        return False

    @property
    @override
    def knows_meaning(self) -> bool:
        return True

    @override
    async def dimension(self) -> int:
        return 3

    @override
    async def embed_query(self, text: str) -> Sequence[float]:
        return (await self.embed_documents([text]))[0]

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.asked += 1
        return [[float(len(text)), 1.0, 0.0] for text in texts]

    @override
    async def ping(self) -> None:
        return


class PortChat(ChatModel):
    """A chat model of somebody's own."""

    @property
    @override
    def name(self) -> str:
        return "port-chat"

    @property
    @override
    def calls_tools(self) -> bool:
        return False

    @override
    async def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply("From the port.", self.name)

    @override
    async def stream(self, request: ChatRequest) -> AsyncIterator[str | ChatReply]:
        yield "From the port."
        yield ChatReply("From the port.", self.name)

    @override
    async def models(self, *, api_key: str | None = None) -> Sequence[str]:
        return [self.name]

    @override
    def unknown_parameters(self, names: Iterable[str]) -> list[str]:
        return []

    @override
    async def ping(self) -> None:
        return


class Odd(Embeddings):
    """Embeddings that answer what they are told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @override
    def embed_query(self, text: str) -> list[float]:
        return self.answer

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.answer for _ in texts]


class Slow(Odd):
    @override
    async def aembed_query(self, text: str) -> list[float]:
        await asyncio.sleep(60)
        return []


MODULE = """
from langchain_core.embeddings import DeterministicFakeEmbedding

embedder = DeterministicFakeEmbedding(size=7)
number = 7
kind = DeterministicFakeEmbedding
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a module of its own name in the working directory, as a program has it, and return the name."""
    name = f"my_embedder_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


async def test_a_named_object_embeds_before_all_other_settings(module: str) -> None:
    config = MemoryConfig(embedder=f"{module}:embedder", embedding_model="gone", embedding_provider="unknown")
    async with open_embedder(config) as embedder:
        assert (embedder.model, await embedder.dimension()) == ("DeterministicFakeEmbedding", 7)
    with pytest.raises(ConfigurationError, match="EMBEDDING_DIMENSIONS is 8"):
        await open_embedder(config.replace(embedding_dimensions=8)).__aenter__()
    assert warnings(config.replace(api_key="k")) == ()


@pytest.mark.parametrize("attribute", ["none", "number", "kind"])
async def test_a_wrong_object_stops_the_start_and_the_setting_is_named(module: str, attribute: str) -> None:
    with pytest.raises(ConfigurationError, match="EMBEDDER"):
        await open_embedder(MemoryConfig(embedder=f"{module}:{attribute}")).__aenter__()
    with pytest.raises(ConfigurationError, match="EMBEDDER"):
        await open_embedder(MemoryConfig(embedder=f"{module}_gone:{attribute}")).__aenter__()


async def test_a_port_is_asked_as_it_is() -> None:
    port = Port()
    async with open_embedder(MemoryConfig(given_embeddings=GivenEmbeddings(port))) as embedder:
        assert (embedder.model, await embedder.dimension()) == ("port-embedder", 3)
        assert await embedder.embed_query("abc") == pytest.approx([0.9486833, 0.3162278, 0.0])
        await embedder.ping()
    assert port.asked == 2


@pytest.mark.parametrize("answer", [[], [float("nan")], None, ["a"]])
async def test_vectors_that_are_none_are_an_error(answer: object) -> None:
    async with open_embedder(MemoryConfig(given_embeddings=GivenEmbeddings(Odd(answer)))) as embedder:
        with pytest.raises(ModelUnavailable, match="usable vectors"):
            await embedder.embed_documents(["a"])
        with pytest.raises(ModelUnavailable, match="usable vectors"):
            await embedder.embed_query("a")


async def test_vectors_of_another_length_and_a_slow_object_are_errors() -> None:
    odd = Odd([1.0, 0.0])
    async with open_embedder(MemoryConfig(given_embeddings=GivenEmbeddings(odd))) as embedder:
        await embedder.embed_query("a")
        odd.answer = [1.0]
        with pytest.raises(ModelUnavailable, match="usable vectors"):
            await embedder.embed_query("b")
    slow = MemoryConfig(given_embeddings=GivenEmbeddings(Slow([1.0])), embedding_timeout_seconds=0.05)
    async with open_embedder(slow) as embedder:
        with pytest.raises(ModelTimeout):
            await embedder.embed_query("a")


@pytest.mark.parametrize(
    ("chat", "reply"),
    [(FakeListChatModel(responses=["From LangChain."]), "From LangChain."), (PortChat(), "From the port.")],
)
@pytest.mark.parametrize("embedder", [DeterministicFakeEmbedding(size=4), Port()])
async def test_an_agent_takes_both_models(tmp_path: Path, chat: object, reply: str, embedder: object) -> None:
    config = MemoryConfig(data_dir=tmp_path)
    async with (
        MemoryAgent("ada", "t1", config, chat=chat, embedder=embedder) as agent,
        MemoryAgent("ada", "t2", config, chat=chat, embedder=embedder) as other,
    ):
        assert (await agent.chat("My name is Ada."))["reply"] == reply
        assert len(await other.fetch_long_term("Ada", k=2, scope="user")) >= 1


async def test_a_given_chat_with_the_lexical_embedder_is_a_warning() -> None:
    config = MemoryConfig(given_chat=GivenChat(PortChat()))
    assert "six paraphrased questions" in warnings(config)[0]
    async with open_chat_model(config) as chat:
        assert (await chat.complete(ChatRequest([]))).text == "From the port."


def test_what_is_no_model_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="embedder"):
        MemoryAgent("ada", "t1", embedder=object())
    with pytest.raises(ConfigurationError, match="chat"):
        MemoryAgent("ada", "t1", chat=PortChat)
