import asyncio
import math
import sys
from pathlib import Path

import pytest

from recollect.memory.providers.catalog import open_reranker
from recollect.memory.values.errors import ConfigurationError, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.cross_encoder import BIAS, WEIGHT, write_cross_encoder
from tests.fakes.openai_server import FakeOpenAI

NAME = "Xenova/ms-marco-MiniLM-L-6-v2"
LOCAL = MemoryConfig(reranker=f"fastembed:{NAME}")
WORDS = "where did ada park the car red tea is cold so"

pytest.importorskip("fastembed", reason="the extra `local` is not installed")


def relevance(shared: int) -> float:
    """Of a text with so many words of the query."""
    return 1 / (1 + math.exp(BIAS - WEIGHT * shared))


@pytest.fixture
def config(tmp_path: Path) -> MemoryConfig:
    write_cross_encoder(tmp_path, words=WORDS)
    return MemoryConfig(reranker_path=tmp_path)


async def test_relevance_is_the_sigmoid_of_the_score_in_the_texts_order(config: MemoryConfig) -> None:
    async with open_reranker(config) as reranker:
        assert reranker is not None
        assert reranker.model == NAME
        found = await reranker.relevance("where is the car", ["the tea is cold", "ada", "where is the red car", ""])
        assert found == pytest.approx([relevance(2), relevance(0), relevance(4), relevance(0)])
        assert await reranker.relevance("where", []) == []


async def test_many_texts_of_any_length_keep_their_order(config: MemoryConfig) -> None:
    texts = ["car " * (number % 7) + "tea " * (number * 5 % 11) for number in range(50)]
    async with open_reranker(config) as reranker:
        assert reranker is not None
        together = await reranker.relevance("car", texts)
    assert together == pytest.approx([relevance(number % 7) for number in range(50)])


async def test_relevance_is_never_0_or_1(config: MemoryConfig) -> None:
    async with open_reranker(config) as reranker:
        assert reranker is not None
        [most] = await reranker.relevance("car " * 30, ["car " * 30])
    assert 0.999 < most < 1


async def test_of_a_long_text_the_beginning_is_read(config: MemoryConfig) -> None:
    within, beyond = "tea " * 999 + "car", "tea " * 1_000 + "car"
    async with open_reranker(config) as reranker:
        assert reranker is not None
        assert await reranker.relevance("car", [within, beyond]) == pytest.approx([relevance(1), relevance(0)])


async def test_the_event_loop_stays_free(config: MemoryConfig) -> None:
    async with open_reranker(config) as reranker:
        assert reranker is not None
        asking = asyncio.create_task(reranker.relevance("car " * 200, ["tea " * 700] * 20))
        turns = 0
        while not asking.done():  # a loop that is held up does not come round
            await asyncio.sleep(0)
            turns += 1
        assert len(await asking) == 20
    assert turns > 100


async def test_what_the_model_cannot_compute_is_said(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path, words=WORDS, last="Log")
    async with open_reranker(MemoryConfig(reranker_path=tmp_path)) as reranker:
        assert reranker is not None
        with pytest.raises(ModelUnavailable, match="no numbers"):
            await reranker.relevance("car", ["tea"])
        with pytest.raises(ModelUnavailable, match="RERANKER"):
            await reranker.relevance("car", ["half a letter: \ud83d"])


async def test_unset_there_is_none() -> None:
    async with open_reranker(MemoryConfig()) as reranker:
        assert reranker is None


async def test_a_wrong_path_names_its_setting(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ConfigurationError, match="RERANKER_PATH"):
            await open_reranker(LOCAL.replace(reranker_path=path)).__aenter__()


@pytest.mark.parametrize("name", ["fastembed:nobody/knows", "Xenova/ms-marco-MiniLM-L-6-v2"])
async def test_an_unknown_model_names_its_setting(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"RERANKER.* fastembed:Xenova"):
        await open_reranker(MemoryConfig(reranker=name)).__aenter__()


async def test_a_hub_out_of_reach_names_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with FakeOpenAI() as gone:
        address = gone.url
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    monkeypatch.setattr(constants, "ENDPOINT", address)
    with pytest.raises(ConfigurationError, match="RERANKER_PATH"):
        await open_reranker(LOCAL).__aenter__()


async def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ConfigurationError, match=r"recollect\[local\]"):
        await open_reranker(LOCAL).__aenter__()
