import asyncio
import json
from collections.abc import AsyncIterator

import numpy as np
import pytest
from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.catalog import open_embedder
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.embeddings import open_openai_embedder
from recollect.memory.values.errors import ConfigurationError, ModelTimeout, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI


@pytest.fixture
async def embedder(config: MemoryConfig) -> AsyncIterator[Embedder]:
    async with open_embedder(config) as opened:
        yield opened


class OpenAIHere(Endpoint):
    """OpenAI itself, as far as the code can tell, at the scripted server's address."""

    @property
    @override
    def is_openai(self) -> bool:
        return True


async def test_vectors_have_length_one_and_keep_their_order(embedder: Embedder, fake: FakeOpenAI) -> None:
    vectors = await embedder.embed_documents(["My dog is Rex", "tea"])
    query = await embedder.embed_query("what is my dog")
    assert [len(vector) for vector in vectors] == [64, 64]
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1.0, 1.0])
    assert np.dot(query, vectors[0]) > 0.5 > np.dot(query, vectors[1])
    assert await embedder.dimension() == 64
    assert len(fake.embeddings) == 2
    assert embedder.model == "fake-embed"


async def test_any_server_is_asked_for_base64(embedder: Embedder, fake: FakeOpenAI) -> None:
    await embedder.embed_query("tea")
    assert fake.embeddings == [{"input": ["tea"], "model": "fake-embed", "encoding_format": "base64"}]


async def test_a_server_that_refuses_base64_is_asked_for_plain_numbers(embedder: Embedder, fake: FakeOpenAI) -> None:
    refusal = {"status": 422, "detail": [{"loc": ["body", "encoding_format"], "msg": "Input should be 'float'"}]}
    fake.on_embeddings = lambda body: refusal if body["encoding_format"] == "base64" else None
    await embedder.embed_query("tea")
    await embedder.embed_query("coffee")
    assert [body["encoding_format"] for body in fake.embeddings] == ["base64", "float", "float"]


@pytest.mark.parametrize("floats_only", [False, True])
async def test_openai_s_base64_is_understood_and_so_are_numbers(fake: FakeOpenAI, floats_only: bool) -> None:
    fake.floats_only = floats_only
    here = OpenAIHere("openai", fake.url, "OPENAI_API_KEY", "k")
    async with open_openai_embedder(here, model="text-embedding-3-small", dimensions=32, timeout_seconds=5) as embedder:
        assert len(await embedder.embed_query("tea")) == 32
    assert fake.embeddings[0]["encoding_format"] == "base64"
    assert fake.embeddings[0]["dimensions"] == 32


async def test_the_dimension_is_asked_once(embedder: Embedder, fake: FakeOpenAI) -> None:
    assert await asyncio.gather(*(embedder.dimension() for _ in range(5))) == [64] * 5
    assert len(fake.embeddings) == 1


async def test_a_stated_dimension_is_not_asked_but_held_to(fake: FakeOpenAI, config: MemoryConfig) -> None:
    async with open_embedder(config.replace(embedding_dimensions=100)) as embedder:
        assert await embedder.dimension() == 100
        assert fake.embeddings == []
        with pytest.raises(ModelUnavailable, match="EMBEDDING_DIMENSIONS") as caught:
            await embedder.embed_query("tea")
        assert not caught.value.outage
    assert "dimensions" not in fake.embeddings[0]


@pytest.mark.parametrize(
    "data",
    [
        [{"embedding": [1.0, float("nan")]}],
        [{"embedding": []}],
        [],
        [{"embedding": [1.0]}, {"embedding": [2.0]}],
        [{"embedding": ["a", "b"]}],
        [{}],
        None,
    ],
)
async def test_vectors_that_are_none_are_refused(embedder: Embedder, fake: FakeOpenAI, data: object) -> None:
    answer = json.dumps({"object": "list", "data": data}).encode()
    fake.on_embeddings = lambda body: {"object": "list", "data": data} if b"NaN" not in answer else answer
    with pytest.raises(ModelUnavailable, match="EMBEDDING_MODEL") as caught:
        await embedder.embed_query("tea")
    assert not caught.value.outage


async def test_blank_texts_are_zero_and_are_not_sent(embedder: Embedder, fake: FakeOpenAI) -> None:
    vectors = await embedder.embed_documents(["", "tea", " \n"])
    assert [any(vector) for vector in vectors] == [False, True, False]
    assert {len(vector) for vector in vectors} == {64}
    assert [body["input"] for body in fake.embeddings] == [["tea"]]
    assert not any(await embedder.embed_query(" "))


async def test_many_texts_go_in_bounded_batches(embedder: Embedder, fake: FakeOpenAI) -> None:
    vectors = await embedder.embed_documents([f"word{number}" for number in range(300)])
    assert len(vectors) == 300
    assert [len(body["input"]) for body in fake.embeddings] == [128, 128, 44]
    await embedder.embed_documents(["long " * 4_000] * 25)
    assert [len(body["input"]) for body in fake.embeddings[3:]] == [10, 10, 5]


async def test_a_text_too_long_for_the_model_is_cut_until_it_fits(embedder: Embedder, fake: FakeOpenAI) -> None:
    fake.on_embeddings = lambda body: 400 if max(map(len, body["input"])) > 2_000 else None
    vectors = await embedder.embed_documents(["x" * 32_000, "tea"])
    assert len(vectors) == 2
    assert [[len(text) for text in body["input"]] for body in fake.embeddings] == [[24_000, 3], [6_000, 3], [1_500, 3]]
    fake.on_embeddings = lambda body: 400
    with pytest.raises(ModelUnavailable) as caught:
        await embedder.embed_query("x" * 7_000)
    assert not caught.value.outage
    assert len(fake.embeddings) == 6


@pytest.mark.parametrize(
    ("status", "outage", "named"),
    [(401, False, "OPENAI_API_KEY"), (404, False, "EMBEDDING_MODEL"), (429, True, "429"), (500, True, "500")],
)
async def test_a_status_becomes_an_outage_or_a_refusal(
    embedder: Embedder, fake: FakeOpenAI, status: int, outage: bool, named: str
) -> None:
    fake.fail(status, times=-1)
    with pytest.raises(ModelUnavailable, match=named) as caught:
        await embedder.embed_query("tea")
    assert caught.value.outage is outage
    with pytest.raises(ModelUnavailable, match=named):
        await embedder.dimension()


async def test_a_call_is_bounded(fake: FakeOpenAI, config: MemoryConfig) -> None:
    fake.hang()
    async with open_embedder(config.replace(embedding_timeout_seconds=0.1)) as embedder:
        with pytest.raises(ModelTimeout, match="EMBEDDING_TIMEOUT_SECONDS"):
            await embedder.embed_query("tea")


async def test_ping_spends_no_tokens(embedder: Embedder, fake: FakeOpenAI) -> None:
    await embedder.ping()
    assert fake.embeddings == []
    fake.drop(times=-1)
    with pytest.raises(ModelUnavailable):
        await embedder.ping()


async def test_the_lexical_one_serves_where_none_is_named(config: MemoryConfig) -> None:
    for chosen in (MemoryConfig(), config.replace(embedding_model=None), config.replace(embedding_model="lexical")):
        async with open_embedder(chosen) as embedder:
            assert embedder.model == "lexical-v1"


async def test_dimensions_that_contradict_the_model_stop_the_start() -> None:
    openai = MemoryConfig(api_key="k")
    for config in (
        MemoryConfig(embedding_dimensions=5),
        openai.replace(embedding_dimensions=4_000),
        openai.replace(embedding_model="text-embedding-ada-002", embedding_dimensions=512),
    ):
        with pytest.raises(ConfigurationError, match="EMBEDDING_DIMENSIONS"):
            await open_embedder(config).__aenter__()
    async with open_embedder(openai.replace(embedding_dimensions=512)) as embedder:
        assert await embedder.dimension() == 512
    async with open_embedder(openai.replace(embedding_model="text-embedding-3-large")) as embedder:
        assert await embedder.dimension() == 3_072
