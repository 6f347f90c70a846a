"""Reads a stopped service's DATA_DIR."""

import asyncio
from pathlib import Path

from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, Turn


def stored_turn(data_dir: Path, turn_id: str, *, user: str = "ada") -> Turn:
    """Return the turn as its database has it."""

    async def read() -> Turn | None:
        async with open_sqlite_store(data_dir / "recollect.db") as store:
            return await store.conversations.turn(user_id=user, turn_id=turn_id)

    turn = asyncio.run(read())
    assert turn is not None
    return turn


def stored_messages(data_dir: Path, *, user: str = "ada", thread: str = "t1") -> list[Message]:
    """Return the thread's messages."""

    async def read() -> list[Message]:
        async with open_sqlite_store(data_dir / "recollect.db") as store:
            return await store.conversations.messages(Scope(user, thread), limit=1_000)

    return asyncio.run(read())


def stored_facts(data_dir: Path, *, user: str = "ada") -> list[Fact]:
    """Return the user's facts that the index follows, in any state."""

    async def read() -> list[Fact]:
        async with open_sqlite_store(data_dir / "recollect.db") as store:
            return [fact async for batch in store.facts.indexed(user_id=user) for fact in batch]

    return asyncio.run(read())


def stored_points(data_dir: Path, *, model: str | None = None, dimension: int | None = None) -> list[str]:
    """Return the ids of the points in an embedder's collection, sorted."""

    async def read() -> list[str]:
        lexical = LexicalEmbedder()
        async with open_edge_index(
            data_dir / "index",
            base="recollect",
            model=model or lexical.model,
            dimension=dimension or await lexical.dimension(),
        ) as index:
            return await index.ids(limit=10_000)

    return asyncio.run(read())
