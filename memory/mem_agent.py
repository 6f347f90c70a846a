"""The library's interface: the memory of one thread, in this process or at a service's address.

It is a composition root: without a configuration it reads the settings from the environment.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast

from recollect.memory.agents.agent import Agent, warn_of_update
from recollect.memory.agents.memory_loop import memory_loop
from recollect.memory.agents.sync_agent import SyncAgent
from recollect.memory.mock_agent import MockMemoryAgent
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.given import GivenChat, GivenEmbeddings
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope

__all__ = ["MemoryAgent", "MockMemoryAgent", "SyncMemoryAgent"]

P = ParamSpec("P")
T = TypeVar("T")


def _forwarded(
    verb: Callable[Concatenate[Agent, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["MemoryAgent", P], Coroutine[Any, Any, T]]:
    """Return the verb as a method of the agent in front."""

    @wraps(verb)
    async def call(self: "MemoryAgent", *args: P.args, **kwargs: P.kwargs) -> T:
        bound = cast("Callable[P, Coroutine[Any, Any, T]]", getattr(self._agent, verb.__name__))  # pyright: ignore[reportPrivateUsage] - its own method
        return await self._run(bound(*args, **kwargs))  # pyright: ignore[reportPrivateUsage] - its own method

    return call


class Chosen(TypedDict, total=False):
    """Chooses what is behind an agent: a service's `url` and `api_key`, or this process with models of your own."""

    url: str | None
    api_key: str | None
    embedder: object | None
    chat: object | None


class MemoryAgent:
    """The memory of one user's thread. It opens at the first call; close it with `aclose()` or `async with`.

    Without `url` it lies in this process, over the stores that `cfg` names, or the settings: all agents of one process
    that have equal configurations share one open memory, synchronous ones too. `embedder` and `chat` are models of your
    own, before those that the configuration names: LangChain's `Embeddings` and chat models, or Recollect's ports
    `Embedder` and `ChatModel`. Whoever made them closes them. With `url` (and the service's `api_key`) it is that
    service's.

    Raises:
        InvalidRequest: an id is not 1-128 characters of [A-Za-z0-9._:@+|~=-].
        ConfigurationError: `url` or `api_key` is none, what is for this process comes with a `url`, or a model is
            neither; from the first call also, where a setting is wrong.
        StoreUnavailable, ModelUnavailable: from any call, where a backend, or the service, is down.
    """

    def __init__(self, user_id: str, thread_id: str, cfg: MemoryConfig | None = None, **chosen: Unpack[Chosen]) -> None:
        self._agent = _agent(Scope.named(user_id, thread_id), cfg, **chosen)
        self._is_elsewhere = chosen.get("url") is not None

    async def __aenter__(self) -> Self:
        """Open the memory now."""
        await self._run(self._agent.__aenter__())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the memory."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the memory once no other agent uses it, after its pending updates. A later call opens it again."""
        await self._run(self._agent.aclose())

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await what the agent does: requests in the caller's loop, a memory of this process in the memory's."""
        return await work if self._is_elsewhere else await memory_loop.run(work)

    async def update(self, user_message: str, assistant_response: str) -> dict[str, Any]:
        """Deprecated: call `update_facts_and_embeddings`."""
        warn_of_update()
        return await self.update_facts_and_embeddings(user_message, assistant_response)

    chat = _forwarded(Agent.chat)
    context = _forwarded(Agent.context)
    store_message = _forwarded(Agent.store_message)
    stats = _forwarded(Agent.stats)
    clear = _forwarded(Agent.clear)
    fetch_short_term = _forwarded(Agent.fetch_short_term)
    fetch_long_term = _forwarded(Agent.fetch_long_term)
    get_user_facts = _forwarded(Agent.get_user_facts)
    formatted_history = _forwarded(Agent.formatted_history)
    update_facts_and_embeddings = _forwarded(Agent.update_facts_and_embeddings)
    exchange = _forwarded(Agent.exchange)
    exchanges = _forwarded(Agent.exchanges)
    list_facts = _forwarded(Agent.list_facts)
    put_fact = _forwarded(Agent.put_fact)
    patch_fact = _forwarded(Agent.patch_fact)
    forget_fact = _forwarded(Agent.forget_fact)
    fact_history = _forwarded(Agent.fact_history)
    approve_fact = _forwarded(Agent.approve_fact)
    reject_fact = _forwarded(Agent.reject_fact)
    undo = _forwarded(Agent.undo)
    learn = _forwarded(Agent.learn)
    apply_learning = _forwarded(Agent.apply_learning)
    add_text = _forwarded(Agent.add_text)


class SyncMemoryAgent(SyncAgent):
    """A `MemoryAgent` for code that does not await, also inside a running event loop, which it then holds up.

    It takes the same arguments and has the same methods and errors; close it with `close()` or `with`.
    """

    def __init__(self, user_id: str, thread_id: str, cfg: MemoryConfig | None = None, **chosen: Unpack[Chosen]) -> None:
        super().__init__(_agent(Scope.named(user_id, thread_id), cfg, **chosen))


def _agent(
    scope: Scope,
    cfg: MemoryConfig | None,
    *,
    url: str | None = None,
    api_key: str | None = None,
    embedder: object | None = None,
    chat: object | None = None,
) -> Agent:
    """Return the agent behind the one in front. Each is imported where it is wanted: neither needs the other."""
    if url is not None:
        if any(own is not None for own in (cfg, embedder, chat)):
            raise ConfigurationError("cfg, embedder and chat are for a memory of this process, url names a service's.")
        from recollect.memory.agents.connection import ServiceConnection
        from recollect.memory.agents.remote_agent import RemoteAgent

        return RemoteAgent(ServiceConnection(url, api_key), scope, closes=True)
    if api_key is not None:
        raise ConfigurationError("api_key is for a service; name its url too.")
    from recollect.memory.agents.embedded_agent import EmbeddedAgent

    return EmbeddedAgent(scope, cfg, _configured, _given_models(embedder, chat))


def _given_models(embedder: object | None, chat: object | None) -> dict[str, Any]:
    """Return the fields of a configuration that hold these objects."""
    models: dict[str, Any] = {}
    if embedder is not None:
        models["given_embeddings"] = GivenEmbeddings(embedder)
    if chat is not None:
        models["given_chat"] = GivenChat(chat)
    return models


def _configured() -> MemoryConfig:
    """Return the settings' configuration; imported here because a service's client needs no settings."""
    from recollect.settings import load_settings

    return load_settings().memory()
