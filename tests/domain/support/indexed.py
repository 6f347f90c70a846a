"""The base of the tests that compare index and store: real stores, and an embedder that counts."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from recollect.memory.index.expected import expected
from recollect.memory.index.indexing import IndexStep
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex, fact_point_id
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Message
from recollect.memory.values.update import Step, Update, owed
from tests.contracts.store.samples import NOW, fact, finish

LEARNED = Update(steps={"facts": Step("done"), "index": Step("done")})
LATER = NOW + timedelta(minutes=5)


@dataclass
class CountingEmbedder:
    """The lexical embedder, counting texts; it can be made to fail, and waits while its gate is shut."""

    texts: list[str] = field(default_factory=list[str])
    calls: int = 0
    fails_after: int | None = None
    refuses: str | None = None
    outage: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: int = 0
    model = "lexical-v1"
    knows_meaning = False
    embeds_alike = False

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
        self.calls += 1
        return await LexicalEmbedder().embed_documents(texts)

    async def ping(self) -> None:
        """Do nothing: it is always available."""


@asynccontextmanager
async def open_index(folder: Path) -> AsyncGenerator[VectorIndex]:
    """Open the embedded index of the counting embedder."""
    embedder = CountingEmbedder()
    dimension = await embedder.dimension()
    async with open_edge_index(folder / "index", base="test", model=embedder.model, dimension=dimension) as opened:
        yield opened


@asynccontextmanager
async def open_documents(folder: Path) -> AsyncGenerator[Store]:
    """Open the embedded store."""
    async with open_sqlite_store(folder / "recollect.db") as opened:
        yield opened


async def finish_all(store: Store, count: int, **how: str) -> list[Message]:
    """Store `count` finished turns whose index step is done; return their messages."""
    exchanges = [await finish(store, f"turn{number}", update=LEARNED, **how) for number in range(count)]
    return [message for exchange in exchanges for message in exchange.messages]


async def tell(store: Store, index: VectorIndex, count: int, **how: str) -> list[Message]:
    """Store and index `count` finished turns."""
    messages = await finish_all(store, count, **how)
    await IndexStep(index, CountingEmbedder(), store.timeline).add(messages)
    return messages


async def begin(store: Store, turn_id: str = "now") -> list[Message]:
    """Store a finished turn whose update is pending."""
    exchange = await finish(store, turn_id, update=owed())
    return [exchange.user, exchange.assistant]


async def learn(store: Store, fact_id: str = "f1", **changes: object) -> Fact:
    """Store a fact that the index lacks."""
    made = fact(a_uuid(fact_id), **changes)  # pyright: ignore[reportArgumentType] - whatever fields a fact has
    assert await store.facts.insert(made)
    return made


async def archive(store: Store, thread_id: str = "t1", *, summary: str = "Ada likes tea.") -> ThreadRecord:
    """Store a thread record whose summary the index lacks."""
    made = ThreadRecord("ada", thread_id).revised(
        summary=summary, summarised_to=2, summarised_at=NOW, archived_to=2, archived_at=NOW
    )
    assert await store.threads.put(made, revision=0)
    return made


def a_uuid(name: str) -> str:
    """Return a fact's id, which is a UUID, from a short name."""
    return f"00000000-0000-4000-8000-{name.encode().hex():0>12}"


def point_of(fact: Fact) -> str:
    """Return the id of the fact's point."""
    return fact_point_id(fact.user_id, fact.id)


async def all_ids(index: VectorIndex) -> list[str]:
    """Return the ids of all points, ascending."""
    seen = list[str]()
    while page := await index.ids(after=seen[-1] if seen else None):
        seen += page
    return seen


async def called_for_ids(store: Store) -> list[str]:
    """Return the ids of all points that the index must hold, ascending."""
    return sorted([entry.id async for entries in expected(store) for entry in entries])


def scope(thread_id: str | None = None) -> Scope:
    """Return Ada's scope, or one of her threads'."""
    return Scope("ada", thread_id)
