"""The facts step with all that it needs, over real stores and a scripted extractor."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from memory.batching import Batching
from memory.decision import Proposal
from memory.documents import Documents
from memory.embedder import Embedder
from memory.extractor import Extraction, ExtractionRequest
from memory.fences import Fences
from memory.known_facts import Nomination
from memory.known_passages import KnownPassages
from memory.learning import FactsStep
from memory.mem_config import MemoryConfig
from memory.owed_points import OwedPoints
from memory.providers.lexical import LexicalEmbedder
from memory.reconciliation import Review
from memory.scope import Scope
from memory.shelf import Shelf
from memory.stores.edge_index import open_edge_index
from memory.stores.sqlite import open_sqlite_documents
from memory.vector_index import VectorIndex


class Killed(BaseException):
    """What a kill -9 looks like to the code that it cuts off."""


@dataclass
class Dying:
    """A part of a store whose process is killed before the write after so many."""

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
    """Documents with one part put in the place of their own."""

    documents: Documents
    parts: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.parts[name] if name in self.parts else getattr(self.documents, name)


def dying_facts(documents: Documents, dying: Dying) -> Any:
    """The documents with facts that die."""
    return With(documents, {"facts": dying})


@dataclass
class ScriptedExtractor:
    """Answers the proposals, or raises the errors first."""

    proposals: tuple[Proposal, ...] = ()
    errors: list[Exception] = field(default_factory=list[Exception])
    requests: list[ExtractionRequest] = field(default_factory=list[ExtractionRequest])

    async def extract(self, request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        return Extraction(self.proposals, model or "scripted")


@dataclass
class Stores:
    """Open embedded stores."""

    documents: Documents
    index: VectorIndex
    embedder: Embedder
    points: OwedPoints


@asynccontextmanager
async def stores(folder: Path) -> AsyncGenerator[Stores]:
    """Documents, index and the worker of owed points (which begins nothing by itself) in a folder."""
    embedder = LexicalEmbedder()
    dimension = await embedder.dimension()
    async with (
        open_sqlite_documents(folder / "recollect.db") as documents,
        open_edge_index(folder / "index", base="test", model=embedder.model, dimension=dimension) as index,
    ):
        points = OwedPoints(documents, index, embedder, sweep_seconds=3600)
        try:
            yield Stores(documents, index, embedder, points)
        finally:
            await points.close()


class Boundless:
    """Keeps everything: no user and no thread of these tests holds too much."""

    def touch(self, user_id: str) -> None:
        """Nothing is counted."""

    async def trim_thread(self, scope: Scope) -> None:
        """Nothing goes."""


def facts_step(
    opened: Stores,
    extractor: ScriptedExtractor,
    *,
    clock: Callable[[], datetime],
    documents: Documents | None = None,
    review: Review | None = None,
    config: MemoryConfig | None = None,
) -> FactsStep:
    """The step over the stores; `documents` stands in for theirs."""
    used = documents or opened.documents
    chosen = config or MemoryConfig()
    return FactsStep(
        documents=used,
        extractor=extractor,
        nomination=Nomination(opened.index, opened.embedder, chosen.duplicate_similarity),
        passages=KnownPassages(
            Shelf(opened.documents.library, clock),
            opened.documents.library,
            opened.index,
            opened.embedder,
            chosen.duplicate_similarity,
        ),
        points=opened.points,
        batching=Batching(used, chosen),
        review=review or Review("off", ()),
        schema=None,
        bounds=Boundless(),
        fences=Fences(used.erasures),
        clock=clock,
    )
