import asyncio
import logging
import os
import stat
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.catalog import open_embedder
from recollect.memory.providers.local import query_model
from recollect.memory.providers.local.local_model import batches_by_length
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig, QueryPrecision
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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recollect" / "int8"


def _queries(model_path: Path, precision: QueryPrecision) -> list[Sequence[float]]:
    async def embedded() -> list[Sequence[float]]:
        config = LOCAL.replace(embedding_model_path=model_path, embedding_query_precision=precision)
        async with open_embedder(config) as embedder:
            return [await embedder.embed_query(text) for text in ("my puppy's name?", "Trains at nine", "tea " * 300)]

    return asyncio.run(embedded())


def test_queries_are_read_by_8_bit_weights_that_are_made_once(embedding_model_path: Path, cache: Path) -> None:
    own = _queries(embedding_model_path, "float32")
    assert not cache.exists()
    small = _queries(embedding_model_path, "int8")
    [copied] = cache.iterdir()
    made = copied.stat()
    assert made.st_size < (embedding_model_path / "model.onnx").stat().st_size * 0.7
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    for by_own, by_small in zip(own, small, strict=True):
        assert np.linalg.norm(by_small) == pytest.approx(1.0)
        assert query_model.LEAST_LIKENESS < np.dot(by_own, by_small) < 0.99999
    assert _queries(embedding_model_path, "int8") == small
    assert [file.stat() for file in cache.iterdir()] == [made]


@pytest.mark.parametrize("fault", ["no cache", "no model", "other vectors"])
def test_queries_keep_the_models_own_weights_where_8_bits_do_not_serve(
    fault: str,
    embedding_model_path: Path,
    cache: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = _queries(embedding_model_path, "float32")
    if fault == "no cache":
        cache.parent.parent.write_text("no folder")
    elif fault == "no model":
        _queries(embedding_model_path, "int8")
        [copied] = cache.iterdir()
        copied.write_bytes(b"half a file")
    else:
        monkeypatch.setattr(query_model, "LEAST_LIKENESS", 0.99999)
    with caplog.at_level(logging.WARNING):
        assert _queries(embedding_model_path, "int8") == own
    [told] = [record for record in caplog.records if vars(record).get("action") == "query_precision"]
    assert "the model's own weights" in told.message


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
