"""Checks what a configuration takes: old names, texts for paths, an object that embeds, and a private folder."""

import math
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from recollect.memory.mem_agent import MemoryAgent
from recollect.memory.providers.catalog import open_embedder
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig

PROJECT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("mongo_uri", "mongodb_url", "mongodb://localhost"),
        ("db_name", "mongodb_database", "theirs"),
        ("short_term_window", "window", 3),
        ("embeddings", "embedding_model", "lexical"),
    ],
)
def test_an_old_name_is_taken_and_names_the_new_one(old: str, new: str, value: str | int) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old}.*{new}") as caught:
        made = MemoryConfig(**{old: value})  # type: ignore[arg-type]
    assert getattr(made, new) == value
    assert caught[0].filename == __file__
    assert made == MemoryConfig(**{new: value})  # type: ignore[arg-type]
    with pytest.warns(DeprecationWarning, match=old):
        assert getattr(MemoryConfig().replace(**{old: value}), new) == value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(made.replace(top_k=1), new) == value


def test_the_new_name_counts_where_both_are_given() -> None:
    with pytest.warns(DeprecationWarning, match="window"):
        assert MemoryConfig(window=4, short_term_window=9).window == 4


def test_paths_may_be_texts() -> None:
    made = MemoryConfig(data_dir="some/where", reranker_path="m")  # type: ignore[arg-type]
    assert (made.data_dir, made.reranker_path) == (Path("some/where"), Path("m"))
    assert made == MemoryConfig(data_dir=Path("some/where"), reranker_path=Path("m"))
    assert hash(made) == hash(made.replace(data_dir="some/where"))


class Encoding:
    """As sentence-transformers has it."""

    def encode(self, texts: list[str]) -> list[list[float]]:
        return [[3.0, 4.0 * len(text)] for text in texts]


@pytest.mark.parametrize("given", [DeterministicFakeEmbedding(size=4), Encoding()])
async def test_an_object_that_embeds_is_used(tmp_path: Path, given: object) -> None:
    with pytest.warns(DeprecationWarning, match="embedding_model"):
        config = MemoryConfig(data_dir=tmp_path, embeddings=given)
    async with open_embedder(config) as embedder:
        assert embedder.model == type(given).__name__
        vector = await embedder.embed_query("Hi")
        assert len(vector) == await embedder.dimension()
        assert math.isclose(math.hypot(*vector), 1)
        assert [len(one) for one in await embedder.embed_documents(["a", "b"])] == [len(vector)] * 2
    async with MemoryAgent("ada", "t1", config) as agent:
        await agent.update_facts_and_embeddings("I love hiking in the mountains.", "Nice!")
        assert len(await agent.fetch_long_term("hiking", k=2)) == 2


def test_an_object_that_does_not_embed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="embedding_model"):
        MemoryConfig(embeddings=object())


def found(folder: Path) -> list[tuple[str, int]]:
    """Return what lies in the folder, with its mode."""
    return [(path.name, path.stat().st_mode) for path in folder.iterdir()]


async def test_a_private_folder_is_gone_after_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    config = MemoryConfig(data_dir=":memory:")  # type: ignore[arg-type]
    async with MemoryAgent("ada", "t1", config) as one, MemoryAgent("ada", "t2", config) as other:
        await one.update_facts_and_embeddings("My name is Ada.", "Hi.")
        assert await other.get_user_facts() == {"name": "Ada"}
        ((_, mode),) = found(tmp_path)
        assert mode & 0o777 == 0o700
    assert found(tmp_path) == []
    async with MemoryAgent("ada", "t1", config) as again:
        assert await again.get_user_facts() == {}
    assert found(tmp_path) == []


def test_a_private_folder_is_gone_after_an_exit_without_a_close_and_after_a_kill(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, sys
from recollect import MemoryAgent, MemoryConfig

async def main():
    agent = MemoryAgent("ada", "t1", MemoryConfig(data_dir=":memory:"))
    await agent.get_user_facts()
    print(len(os.listdir(os.environ["TMPDIR"])), flush=True)
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "close":
        await agent.aclose()
    sys.stdout.flush()
    sys.exit(0)

asyncio.run(main())
"""
    folder = tmp_path / "tmp"
    folder.mkdir()
    counts: list[tuple[str, int]] = []
    for how in ("kill", "exit", "kill", "close"):
        ran = subprocess.run(
            [sys.executable, "-c", script, how],
            cwd=tmp_path,
            env={"PYTHONPATH": str(PROJECT), "PATH": "", "TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.stdout, ran.stderr
        counts.append((ran.stdout.strip(), len(list(folder.iterdir()))))
    assert counts == [("1", 1), ("1", 0), ("1", 1), ("1", 0)]
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]


def test_the_library_is_imported_without_a_database(tmp_path: Path) -> None:
    databases = ("aiosqlite", "fastapi", "langgraph", "numpy", "openai", "pymongo", "qdrant_client", "qdrant_edge")
    script = (
        "import sys; from recollect import MemoryAgent, MemoryConfig, MockMemoryAgent;"
        f"print(sorted(set({databases!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
