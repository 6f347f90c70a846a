import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.catalog import open_embedder
from recollect.memory.providers.local.local_model import batches_by_length
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI

NAME = "sentence-transformers/all-MiniLM-L6-v2"
LOCAL = MemoryConfig(embedding_model=f"fastembed:{NAME}")

pytest.importorskip("fastembed", reason="the extra `local` is not installed")


@pytest.fixture
async def embedder() -> AsyncIterator[Embedder]:
    path = os.environ.get("EMBEDDING_MODEL_PATH")
    if not path:
        pytest.skip(f"EMBEDDING_MODEL_PATH does not name a folder with {NAME}")
    async with open_embedder(LOCAL.replace(embedding_model_path=Path(path))) as opened:
        yield opened


async def test_a_local_model_knows_meaning(embedder: Embedder) -> None:
    assert await embedder.dimension() == 384
    assert embedder.model == NAME
    await embedder.ping()
    near, far = await embedder.embed_documents(["My dog is called Rex.", "The train leaves at nine."])
    query = await embedder.embed_query("What is my puppy's name?")
    assert np.linalg.norm([near, far, query], axis=1) == pytest.approx([1.0] * 3)
    assert np.dot(query, near) > np.dot(query, far) + 0.2
    assert await embedder.embed_documents([]) == []
    assert len((await embedder.embed_documents(["long text " * 3_200]))[0]) == 384


async def test_many_texts_keep_their_order(embedder: Embedder) -> None:
    texts = [f"{number} " + "dogs and trains " * (number * 7 % 40) for number in range(40)]
    together = await embedder.embed_documents(texts)
    for number in (0, 13, 39):
        [alone] = await embedder.embed_documents([texts[number]])
        assert together[number] == pytest.approx(alone, abs=1e-4)


def test_a_batch_is_bounded_by_its_characters_and_its_texts() -> None:
    texts = ["a" * length for length in (9_000, *[200] * 40, 1_500, 2_000, 2_100, *[1] * 20)]
    batches = batches_by_length(texts)
    assert sorted(place for batch in batches for place in batch) == list(range(len(texts)))
    for batch in batches:
        longest = max(len(texts[place]) for place in batch)
        assert len(batch) == 1 or (len(batch) <= 16 and len(batch) * longest <= 4_000)
    assert len(batches) <= 8


async def test_a_callers_few_texts_do_not_wait_for_anothers_many(embedder: Embedder) -> None:
    many = asyncio.create_task(embedder.embed_documents(["long text " * 100] * 200))
    await embedder.embed_documents(["Tea."])
    await embedder.embed_query("Tea?")
    assert not many.done()
    many.cancel()


async def test_a_wrong_path_names_its_setting(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ConfigurationError, match="EMBEDDING_MODEL_PATH"):
            await open_embedder(LOCAL.replace(embedding_model_path=path)).__aenter__()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="EMBEDDING_MODEL_PATH"):
        await open_embedder(LOCAL.replace(embedding_model_path=tmp_path)).__aenter__()


async def test_an_unknown_model_names_its_setting() -> None:
    with pytest.raises(ConfigurationError, match="EMBEDDING_MODEL"):
        await open_embedder(MemoryConfig(embedding_model="fastembed:nobody/knows")).__aenter__()


async def test_a_hub_out_of_reach_names_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with FakeOpenAI() as gone:
        address = gone.url
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    monkeypatch.setattr(constants, "ENDPOINT", address)
    with pytest.raises(ConfigurationError, match="EMBEDDING_MODEL_PATH"):
        await open_embedder(LOCAL).__aenter__()


async def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ConfigurationError, match=r"recollect\[local\]"):
        await open_embedder(LOCAL).__aenter__()
