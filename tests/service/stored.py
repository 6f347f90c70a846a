"""What lies in a stopped service's DATA_DIR."""

import asyncio
from pathlib import Path

from memory.fact import Fact
from memory.providers.lexical import LexicalEmbedder
from memory.scope import Scope
from memory.stores.edge_index import open_edge_index
from memory.stores.sqlite import open_sqlite_documents
from memory.turn import Message, Turn


def stored_turn(data_dir: Path, turn_id: str, *, user: str = "ada") -> Turn:
    """The turn as its database has it."""

    async def read() -> Turn | None:
        async with open_sqlite_documents(data_dir / "recollect.db") as documents:
            return await documents.conversations.turn(user_id=user, turn_id=turn_id)

    turn = asyncio.run(read())
    assert turn is not None
    return turn


def stored_messages(data_dir: Path, *, user: str = "ada", thread: str = "t1") -> list[Message]:
    """The thread's messages."""

    async def read() -> list[Message]:
        async with open_sqlite_documents(data_dir / "recollect.db") as documents:
            return await documents.conversations.messages(Scope(user, thread), limit=1_000)

    return asyncio.run(read())


def stored_facts(data_dir: Path, *, user: str = "ada") -> list[Fact]:
    """The user's facts that the index follows, in whatever state."""

    async def read() -> list[Fact]:
        async with open_sqlite_documents(data_dir / "recollect.db") as documents:
            return [fact async for batch in documents.facts.indexed(user_id=user) for fact in batch]

    return asyncio.run(read())


def stored_points(data_dir: Path, *, model: str | None = None, dimension: int | None = None) -> list[str]:
    """The ids of the points in an embedder's collection, sorted."""

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
