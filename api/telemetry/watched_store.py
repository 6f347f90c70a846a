"""Wraps the store and the index, so that each of their calls is watched.

Each part of the store is wrapped once, when it is opened. A wrapper is made from the part's port: the port's abstract
methods are what it forwards, so that a method that is added to a port is watched, too.
"""

import inspect
import types
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar, final

from typing_extensions import override

from recollect.memory.ports.callers.rate_leases import RateLeases
from recollect.memory.ports.client_records import ClientRecords
from recollect.memory.ports.conversations import Conversations
from recollect.memory.ports.counts import Counts
from recollect.memory.ports.documents import Documents
from recollect.memory.ports.embedder import EmbedderChoices
from recollect.memory.ports.erasures import Erasures
from recollect.memory.ports.facts import Facts
from recollect.memory.ports.filtering.filter_terms import FilterTerms
from recollect.memory.ports.imports import Imports
from recollect.memory.ports.keys import Keys
from recollect.memory.ports.observing import UNWATCHED
from recollect.memory.ports.passages import Passages
from recollect.memory.ports.sessions import Sessions
from recollect.memory.ports.store import Store
from recollect.memory.ports.thread_queue import ThreadQueue
from recollect.memory.ports.threads import Threads
from recollect.memory.ports.timeline import Timeline
from recollect.memory.ports.updates import Updates
from recollect.memory.ports.vector_index import VectorIndex

Port = TypeVar("Port")
Item = TypeVar("Item")
Watch = Callable[[str], AbstractContextManager[object] | None]
"""Returns the context manager that watches a call (such as "conversations.accept"), or None to leave it unwatched."""


def watched_index(index: VectorIndex, watch: Watch) -> VectorIndex:
    """Wrap `index`."""
    return _watched(VectorIndex, index, "index", watch, name=index.name)


@final
class WatchedStore(Store):
    """A store whose calls, and those of its parts, are watched. Dashboards know two of the parts by older names."""

    def __init__(self, store: Store, watch: Watch) -> None:
        self._store = store
        self._watch = watch
        documents, erasures = store.documents, store.erasures
        passages = _watched(Passages, documents.passages, "passages", watch)
        self.name = store.name
        self.conversations = _watched(Conversations, store.conversations, "conversations", watch)
        self.timeline = _watched(Timeline, store.timeline, "timeline", watch)
        self.imports = _watched(Imports, store.imports, "imports", watch)
        self.facts = _watched(Facts, store.facts, "facts", watch)
        self.updates = _watched(Updates, store.updates, "updates", watch)
        self.threads = _watched(Threads, store.threads, "threads", watch)
        self.documents = _watched(Documents, documents, "library", watch, passages=passages)
        self.counts = _watched(Counts, store.counts, "counts", watch)
        self.queue = _watched(ThreadQueue, store.queue, "queue", watch)
        self.keys = _watched(Keys, store.keys, "keys", watch)
        leases = store.rate_leases
        self.rate_leases = None if leases is None else _watched(RateLeases, leases, "rate_leases", watch)
        self.filter_terms = _watched(FilterTerms, store.filter_terms, "filter_terms", watch)
        self.sessions = _watched(Sessions, store.sessions, "sessions", watch)
        self.client_records = _watched(ClientRecords, store.client_records, "client_records", watch)
        self.embedder_choices = _watched(EmbedderChoices, store.embedder_choices, "embedder_choices", watch)
        self.erasures = _watched(Erasures, erasures, "erasures", watch, is_shared=erasures.is_shared)

    @override
    def users(self) -> AsyncIterator[Sequence[str]]:
        return _iterated(self._store.users(), "documents.users", self._watch)

    @override
    async def ping(self) -> None:
        with self._watch("documents.ping") or UNWATCHED:
            await self._store.ping()


def _watched(port: type[Port], part: Port, span: str, watch: Watch, **values: object) -> Port:
    """Return a `port` that forwards its abstract methods to `part`, and has `values` as its plain attributes."""
    methods: frozenset[str] = getattr(port, "__abstractmethods__")  # noqa: B009 - its type is unknown to pyright
    forwarding: dict[str, Any] = {
        method: staticmethod(_forwarding(getattr(port, method), getattr(part, method), f"{span}.{method}", watch))
        for method in methods
    }

    def fill(body: dict[str, Any]) -> None:
        body |= forwarding | values

    made: type[Port] = types.new_class(f"Watched{port.__name__}", (port,), exec_body=fill)
    return made()


def _forwarding(declared: Callable[..., Any], call: Callable[..., Any], name: str, watch: Watch) -> Callable[..., Any]:
    """Wrap `call`, which the port declares as a coroutine, or to return an iterator or a context manager."""
    if inspect.iscoroutinefunction(declared):
        return _coroutine(call, name, watch)

    def front(*args: Any, **named: Any) -> Any:
        given = call(*args, **named)
        return _Entering(given, name, watch) if hasattr(given, "__aenter__") else _iterated(given, name, watch)

    return front


def _coroutine(call: Callable[..., Any], name: str, watch: Watch) -> Callable[..., Any]:
    async def front(*args: Any, **named: Any) -> Any:
        with watch(name) or UNWATCHED:
            return await call(*args, **named)

    return front


async def _iterated(items: AsyncIterator[Item], name: str, watch: Watch) -> AsyncIterator[Item]:
    """Watch from the first item that is asked for to the last one."""
    with watch(name) or UNWATCHED:
        async for item in items:
            yield item


class _Entering(AbstractAsyncContextManager[Any]):
    """Watches the entry into `manager`, which is where it waits."""

    def __init__(self, manager: AbstractAsyncContextManager[Any], name: str, watch: Watch) -> None:
        self._manager, self._name, self._watch = manager, name, watch

    @override
    async def __aenter__(self) -> Any:
        with self._watch(self._name) or UNWATCHED:
            return await self._manager.__aenter__()

    @override
    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._manager.__aexit__(*error)
