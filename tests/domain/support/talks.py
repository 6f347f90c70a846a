"""Threads to summarise, archive and bound: their turns, a scripted summariser, and stores that are killed."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from inspect import isasyncgenfunction
from pathlib import Path
from typing import Any

from recollect.memory.index.indexing import make_points
from recollect.memory.ports.store import Store
from recollect.memory.ports.summariser import Summary, SummaryTask
from recollect.memory.ports.vector_index import VectorIndex, episode
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Step, Update
from tests.contracts.store.samples import NOW, answer

T1 = Scope("ada", "t1")


class Killed(BaseException):
    """Simulates a kill -9 for the code that it cuts off."""


@dataclass
class Life:
    """The number of store calls before a process is killed; a killed process makes none."""

    left: int

    def spend(self) -> None:
        if self.left <= 0:
            raise Killed
        self.left -= 1


@dataclass
class Mortal:
    """Stores, and their parts, whose calls each spend one of a `Life`."""

    part: Any
    life: Life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.part, name)
        if name in {"conversations", "facts", "threads", "updates"}:
            return Mortal(found, self.life)
        return self._counted(found) if callable(found) else found

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **named: Any) -> Any:
            self.life.spend()
            return await method(*args, **named)

        async def read(*args: Any, **named: Any) -> AsyncGenerator[Any]:
            self.life.spend()
            async for found in method(*args, **named):
                yield found

        return read if isasyncgenfunction(method) else call


@dataclass
class ScriptedSummariser:
    """Returns the number of turns that it got behind the old summary; raises the errors first, calls `meanwhile`."""

    errors: list[Exception] = field(default_factory=list[Exception])
    requests: list[SummaryTask] = field(default_factory=list[SummaryTask])
    meanwhile: Callable[[], Awaitable[Any]] | None = None

    async def summarise(self, request: SummaryTask) -> Summary:
        self.requests.append(request)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        if self.errors:
            raise self.errors.pop(0)
        said = ",".join(exchange.user.content for exchange in request.exchanges)
        return Summary(f"{request.old or ''}[{said}]", "scripted", "model")


@dataclass
class Stores:
    """Open embedded stores."""

    store: Store
    index: VectorIndex

    def mortal(self, calls: int) -> "Stores":
        """Return the stores for a process that is killed before its next call after `calls`."""
        life = Life(calls)
        documents: Any = Mortal(self.store, life)
        index: Any = Mortal(self.index, life)
        return Stores(documents, index)


@asynccontextmanager
async def open_stores(folder: Path) -> AsyncGenerator[Stores]:
    embedder = LexicalEmbedder()
    dimension = await embedder.dimension()
    async with (
        open_sqlite_store(folder / "recollect.db") as store,
        open_edge_index(folder / "index", base="test", model=embedder.model, dimension=dimension) as index,
    ):
        yield Stores(store, index)


def remembered() -> Update:
    """Return the update of a turn that has been learned from and indexed."""
    return Update(steps={"facts": Step(status="done"), "index": Step(status="done")})


async def say(  # noqa: PLR0913 - each says one thing of the turn
    store: Store,
    text: str,
    scope: Scope = T1,
    *,
    turn_id: str | None = None,
    reply: str = "Yes.",
    at: datetime = NOW,
    update: Update | None = None,
) -> Turn:
    """Store one finished turn; its id is the text unless one is given."""
    asked = Message(scope.user_id, scope.thread, turn_id or text, "user", text, at)
    message = await store.conversations.accept(asked)
    made = update or remembered()
    replied = answer(message, reply)
    assert await store.conversations.commit(replied, result={"model": "m"}, update=made)
    return Turn(message, replied, {"model": "m"}, made)


async def say_all(store: Store, texts: Sequence[str], scope: Scope = T1) -> list[Turn]:
    return [await say(store, text, scope) for text in texts]


async def index_all(stores: Stores, turns: Sequence[Turn]) -> None:
    """Index the messages of these turns."""
    messages = [message for turn in turns for message in (turn.message, turn.reply) if message is not None]
    await stores.index.upsert(await make_points([episode(message) for message in messages], LexicalEmbedder()))
