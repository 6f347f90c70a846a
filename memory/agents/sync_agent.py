"""The agent's verbs for code that does not await."""

from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from recollect.memory.agents.agent import Agent, warn_of_update
from recollect.memory.agents.memory_loop import memory_loop

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    verb: Callable[Concatenate[Agent, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncAgent", P], T]:
    """Return the verb as a method that waits for its result."""

    @wraps(verb)
    def call(self: "SyncAgent", *args: P.args, **kwargs: P.kwargs) -> T:
        bound = cast("Callable[P, Coroutine[Any, Any, T]]", getattr(self._agent, verb.__name__))  # pyright: ignore[reportPrivateUsage] - its own method
        return memory_loop.wait(bound(*args, **kwargs))

    return call


class SyncAgent:
    """Waits in the caller's thread for what `agent` does in the memory's loop; each method is documented at `Agent`."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def __enter__(self) -> Self:
        """Open the memory now."""
        memory_loop.wait(self._agent.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the memory."""
        self.close()

    def close(self) -> None:
        """Close the memory once no other agent uses it, after its pending updates. A later call opens it again."""
        memory_loop.wait(self._agent.aclose())

    def update(self, user_message: str, assistant_response: str) -> dict[str, Any]:
        """Deprecated: call `update_facts_and_embeddings`."""
        warn_of_update()
        return self.update_facts_and_embeddings(user_message, assistant_response)

    chat = _blocking(Agent.chat)
    context = _blocking(Agent.context)
    store_message = _blocking(Agent.store_message)
    stats = _blocking(Agent.stats)
    clear = _blocking(Agent.clear)
    fetch_short_term = _blocking(Agent.fetch_short_term)
    fetch_long_term = _blocking(Agent.fetch_long_term)
    get_user_facts = _blocking(Agent.get_user_facts)
    formatted_history = _blocking(Agent.formatted_history)
    update_facts_and_embeddings = _blocking(Agent.update_facts_and_embeddings)
    exchange = _blocking(Agent.exchange)
    exchanges = _blocking(Agent.exchanges)
    list_facts = _blocking(Agent.list_facts)
    put_fact = _blocking(Agent.put_fact)
    patch_fact = _blocking(Agent.patch_fact)
    forget_fact = _blocking(Agent.forget_fact)
    fact_history = _blocking(Agent.fact_history)
    approve_fact = _blocking(Agent.approve_fact)
    reject_fact = _blocking(Agent.reject_fact)
    undo = _blocking(Agent.undo)
    learn = _blocking(Agent.learn)
    apply_learning = _blocking(Agent.apply_learning)
    add_text = _blocking(Agent.add_text)
