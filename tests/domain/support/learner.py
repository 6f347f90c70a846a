"""The facts step with all that it needs, over real stores and a scripted extractor."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from recollect.memory.erasure.fences import Fences
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.learning.batching import Batching
from recollect.memory.learning.facts_step import FactsStep
from recollect.memory.learning.known_facts import Nomination
from recollect.memory.learning.known_passages import KnownPassages
from recollect.memory.learning.reconciliation import Review
from recollect.memory.ports.embedder import Embedder
from recollect.memory.ports.extractor import Extraction, ExtractionRequest
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.recall.attachments import Attachments
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.updates.retention import Retention
from recollect.memory.values.decision import Proposal
from recollect.memory.values.mem_config import MemoryConfig


class Killed(BaseException):
    """Simulates a kill -9 for the code that it cuts off."""


@dataclass
class Dying:
    """A part of a store whose process is killed before the write after a given number of writes."""

    part: Any
    left: int
    writes: frozenset[str] = frozenset({"insert", "replace", "rewrite", "put", "remove", "delete"})

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.part, name)
        return self._cut(method) if name in self.writes else method

    def _cut(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def write(*args: Any, **named: Any) -> Any:
            if self.left == 0:
                raise Killed
            self.left -= 1
            return await method(*args, **named)

        return write


@dataclass
class With:
    """A store with one part replaced."""

    store: Store
    parts: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.parts[name] if name in self.parts else getattr(self.store, name)


def dying_facts(store: Store, dying: Dying) -> Any:
    """Return the store with facts that die."""
    return With(store, {"facts": dying})


@dataclass
class ScriptedExtractor:
    """Returns the proposals, or raises the errors first."""

    proposals: tuple[Proposal, ...] = ()
    errors: list[Exception] = field(default_factory=list[Exception])
    requests: list[ExtractionRequest] = field(default_factory=list[ExtractionRequest])

    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        return Extraction(self.proposals, model or "scripted")

    async def may_ask(self, model: str) -> bool:
        return model in {"scripted", "other"}


@dataclass
class Stores:
    """Open embedded stores."""

    store: Store
    index: VectorIndex
    embedder: Embedder
    points: IndexOutbox


@asynccontextmanager
async def stores(folder: Path) -> AsyncGenerator[Stores]:
    """Open store, index and the index outbox's worker (which begins nothing by itself) in a folder."""
    embedder = LexicalEmbedder()
    dimension = await embedder.dimension()
    async with (
        open_sqlite_store(folder / "recollect.db") as store,
        open_edge_index(folder / "index", base="test", model=embedder.model, dimension=dimension) as index,
    ):
        points = IndexOutbox(store, index, embedder, sweep_seconds=3600)
        try:
            yield Stores(store, index, embedder, points)
        finally:
            await points.close()


def facts_step(
    opened: Stores,
    extractor: ScriptedExtractor,
    *,
    clock: Callable[[], datetime],
    store: Store | None = None,
    review: Review | None = None,
    config: MemoryConfig | None = None,
) -> FactsStep:
    """Make the step over the stores; `store` replaces theirs."""
    used = store or opened.store
    chosen = config or MemoryConfig()
    return FactsStep(
        store=used,
        extractor=extractor,
        nomination=Nomination(opened.index, opened.embedder, chosen.duplicate_similarity),
        passages=KnownPassages(
            Attachments(opened.store, clock),
            opened.store.documents,
            opened.index,
            opened.embedder,
            chosen.duplicate_similarity,
        ),
        points=opened.points,
        batching=Batching(used, chosen),
        review=review or Review("off", ()),
        schema=None,
        retention=Retention(used, opened.index, chosen, clock),
        fences=Fences(used.erasures),
        clock=clock,
    )
