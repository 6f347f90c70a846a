"""MEMORY_SCOPE=auto: the thread's hits go before those of the user's other threads, which fill the free places."""

from pathlib import Path
from typing import Any

import pytest

from recollect.memory.mem_agent import MemoryAgent
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.mem_config import MemoryConfig

SAID = {
    "here": ("Tea needs three minutes.",),
    "there": ("I buy oolong tea in the green tea shop.", "Green tea cools quickly."),
}
QUESTION = "green tea shop"


@pytest.fixture
async def cfg(tmp_path: Path) -> MemoryConfig:
    config = MemoryConfig(data_dir=tmp_path / "data", window=0)
    for thread, messages in SAID.items():
        async with MemoryAgent("ada", thread, config) as agent:
            for message in messages:
                await agent.update_facts_and_embeddings(message, "All right.")
    return config


async def found(config: MemoryConfig, thread: str = "here", **options: Any) -> list[dict[str, Any]]:
    async with MemoryAgent("ada", thread, config) as agent:
        hits = (await agent.context(QUESTION, **options))["hits"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    return [hit for hit in hits if hit["role"] == "user"]


def told(hits: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(hit["thread_id"], hit["content"]) for hit in hits]


OWN = ("here", SAID["here"][0])
OTHERS = [("there", content) for content in SAID["there"]]


async def test_other_threads_fill_the_places_that_are_free(cfg: MemoryConfig) -> None:
    assert sorted(told(await found(cfg))) == sorted([OWN, *OTHERS])
    assert told(await found(cfg, scope="thread")) == [OWN]
    assert sorted(told(await found(cfg, "new", scope="auto"))) == sorted([OWN, *OTHERS])
    assert told(await found(cfg, "new", scope="thread")) == []


async def test_another_threads_hit_takes_a_place_only_if_it_scores_more_by_the_margin(cfg: MemoryConfig) -> None:
    assert told(await found(cfg, top_k=1)) == OTHERS[:1], "it says all that is asked for"
    assert told(await found(cfg.replace(scope_margin=5.0), top_k=1)) == [OWN]
    assert told(await found(cfg.replace(scope_margin=5.0), "new", top_k=1)) == OTHERS[:1]
    assert await found(cfg.replace(scope_margin=0.0)) == await found(cfg, scope="user")


async def test_options_take_the_configured_defaults(cfg: MemoryConfig) -> None:
    assert told(await found(cfg.replace(scope="thread"))) == [OWN]
    assert told(await found(cfg.replace(scope="thread", top_k=1), scope="user")) == OTHERS[:1]
    assert await found(cfg.replace(score_threshold=1.0)) == []
    fresh = await found(cfg.replace(recency_weight=1.0), scope="user")
    assert all(hit["score"] == hit["recency"] for hit in fresh)
    async with MemoryAgent("ada", "here", cfg.replace(recency_weight=1.0, scope="thread")) as agent:
        documents = await agent.fetch_long_term(QUESTION)
        assert all(one.metadata["score"] == one.metadata["recency"] for one in documents)
        assert {one.metadata["thread_id"] for one in documents} == {"here"}


@pytest.mark.parametrize("wrong", [{"scope": "world"}, {"coverage": "maybe"}, {"time": "later"}])
async def test_other_words_are_refused_by_name(cfg: MemoryConfig, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await found(cfg, **wrong)
    assert [problem.field for problem in refused.value.problems] == [f"memory.{name}" for name in wrong]
