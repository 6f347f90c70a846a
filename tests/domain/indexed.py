"""What the tests of the index against the documents stand on: real stores, and an embedder that counts."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from memory.documents import Documents
from memory.errors import ModelUnavailable
from memory.expected import expected
from memory.fact import Fact
from memory.indexing import IndexStep
from memory.providers.lexical import LexicalEmbedder
from memory.scope import Scope
from memory.stores.edge_index import open_edge_index
from memory.stores.sqlite import open_sqlite_documents
from memory.thread_record import ThreadRecord
from memory.turn import Message
from memory.update import Step, Update, owed
from memory.vector_index import VectorIndex
from tests.contracts.documents.samples import NOW, fact, finish

LEARNED = Update(steps={"facts": Step("done"), "index": Step("done")})
LATER = NOW + timedelta(minutes=5)


@dataclass
class CountingEmbedder:
    """The lexical embedder, counting the texts; it fails where it is told to, and waits while its gate is shut."""

    texts: list[str] = field(default_factory=list[str])
    fails_after: int | None = None
    refuses: str | None = None
    outage: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    model = "lexical-v1"
    knows_meaning = False

    def __post_init__(self) -> None:
        self.gate.set()

    async def dimension(self) -> int:
        return await LexicalEmbedder().dimension()

    async def embed_query(self, text: str) -> Sequence[float]:
        return await LexicalEmbedder().embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.waiting += 1
        await self.gate.wait()
        self.waiting -= 1
        if self.outage or (self.fails_after is not None and len(self.texts) >= self.fails_after):
            raise ModelUnavailable
        if self.refuses is not None and any(self.refuses in text for text in texts):
            raise ModelUnavailable(outage=False)
        self.texts += texts
        return await LexicalEmbedder().embed_documents(texts)

    async def ping(self) -> None:
        """It is here."""


@asynccontextmanager
async def open_index(folder: Path) -> AsyncGenerator[VectorIndex]:
    """The embedded index of the counting embedder."""
    embedder = CountingEmbedder()
    dimension = await embedder.dimension()
    async with open_edge_index(folder / "index", base="test", model=embedder.model, dimension=dimension) as opened:
        yield opened


@asynccontextmanager
async def open_documents(folder: Path) -> AsyncGenerator[Documents]:
    """The embedded documents."""
    async with open_sqlite_documents(folder / "recollect.db") as opened:
        yield opened


async def finish_all(documents: Documents, count: int, **how: str) -> list[Message]:
    """So many finished turns whose index step is done, as their messages."""
    exchanges = [await finish(documents, f"turn{number}", update=LEARNED, **how) for number in range(count)]
    return [message for exchange in exchanges for message in exchange.messages]


async def tell(documents: Documents, index: VectorIndex, count: int, **how: str) -> list[Message]:
    """So many finished turns, indexed."""
    messages = await finish_all(documents, count, **how)
    await IndexStep(index, CountingEmbedder(), documents.timeline).add(messages)
    return messages


async def begin(documents: Documents, turn_id: str = "now") -> list[Message]:
    """A finished turn whose update is pending."""
    exchange = await finish(documents, turn_id, update=owed())
    return [exchange.user, exchange.assistant]


async def learn(documents: Documents, fact_id: str = "f1", **changes: object) -> Fact:
    """A stored fact that the index has yet to follow."""
    made = fact(a_uuid(fact_id), **changes)  # pyright: ignore[reportArgumentType] - whatever fields a fact has
    assert await documents.facts.insert(made)
    return made


async def archive(documents: Documents, thread_id: str = "t1", *, summary: str = "Ada likes tea.") -> ThreadRecord:
    """A stored thread record whose summary the index has yet to follow."""
    made = ThreadRecord("ada", thread_id).revised(
        summary=summary, summarised_to=2, summarised_at=NOW, archived_to=2, archived_at=NOW
    )
    assert await documents.threads.put(made, revision=0)
    return made


def a_uuid(name: str) -> str:
    """A fact's id, which is a UUID, from a short name."""
    return f"00000000-0000-4000-8000-{name.encode().hex():0>12}"


async def all_ids(index: VectorIndex) -> list[str]:
    """The ids of all points, ascending."""
    seen = list[str]()
    while page := await index.ids(after=seen[-1] if seen else None):
        seen += page
    return seen


async def called_for_ids(documents: Documents) -> list[str]:
    """The ids of all that the index must hold, ascending."""
    return sorted([entry.id async for entries in expected(documents) for entry in entries])


def scope(thread_id: str | None = None) -> Scope:
    """Ada's, or of one of her threads."""
    return Scope("ada", thread_id)
