"""The graph's context: the open services and callbacks of one run. State holds values; nothing here is ever stored.

The schema that Studio sees has no fields, because a client-typed one makes its form disappear. The service passes a
`LiveContext`; without one (Studio), the nodes open the shared resources themselves and report to no listener.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from langgraph.runtime import Runtime

from recollect.graph.client_chat import ClientChat, Placed
from recollect.graph.open_rounds import OpenRounds
from recollect.graph.resources import Services, shared
from recollect.memory.erasure.fences import Fence
from recollect.memory.values.turn import Message, Turn


class Listener(Protocol):
    """Receives a turn's events while it runs."""

    @property
    def wants_tokens(self) -> bool:
        """Tell whether the reply's text should come in pieces."""
        ...

    def recalled(self, memory: dict[str, Any]) -> None:
        """Take the recalled `memory`, as the reply will show it but for its update."""
        ...

    def token(self, text: str) -> None:
        """Take a piece of the reply's text."""
        ...

    def saved(self, turn: Turn) -> None:
        """Take the committed turn: the reply may go out."""
        ...

    def answered(self, turn: Turn) -> None:
        """Take an answer of which nothing is stored: it may go out. `turn` is as it would have been stored."""
        ...


class Silence:
    """A listener that ignores every event."""

    wants_tokens = False

    def recalled(self, memory: dict[str, Any]) -> None:
        """Ignore it."""

    def token(self, text: str) -> None:
        """Ignore it."""

    def saved(self, turn: Turn) -> None:
        """Ignore it."""

    def answered(self, turn: Turn) -> None:
        """Ignore it."""


@dataclass(frozen=True)
class Context:
    """What Studio may give a run: nothing."""


@dataclass(frozen=True)
class LiveContext(Context):
    """The context that the service gives a run; `accepted` is the turn's message as it was stored.

    `accepted.position` is 0 where the message is stored with the answer; its `thread_id` is empty where nothing is
    stored. `regenerates`: the turn has an answer already, which this run replaces. `placed` is a chat client's part of
    the turn, `rounds` keeps the agent's part in calls of its tools. `fence` was observed before anything was read for
    the run.
    """

    services: Services
    listener: Listener
    accepted: Message
    regenerates: bool = False
    placed: Placed | None = None
    fence: Fence | None = None
    rounds: OpenRounds = field(default_factory=OpenRounds)


def fence_of(runtime: Runtime[Context]) -> Fence | None:
    """Return the fence that refuses this run's writes once its user was erased; None without one (Studio)."""
    context = runtime.context
    return context.fence if isinstance(context, LiveContext) else None


async def services_of(runtime: Runtime[Context]) -> Services:
    """Return the open services of this run: the ones that the service gave, else the shared ones."""
    context = runtime.context
    return context.services if isinstance(context, LiveContext) else await shared.get()


def listener_of(runtime: Runtime[Context]) -> Listener:
    """Return the run's listener; `Silence` where it has none."""
    context = runtime.context
    return context.listener if isinstance(context, LiveContext) else Silence()


def accepted_of(runtime: Runtime[Context]) -> Message | None:
    """Return the turn's message if the service accepted it before the run began."""
    context = runtime.context
    return context.accepted if isinstance(context, LiveContext) else None


def regenerated_of(runtime: Runtime[Context]) -> str | None:
    """Return the id of the turn that this run regenerates, if any: its previous answer and facts are not recalled."""
    context = runtime.context
    return context.accepted.turn_id if isinstance(context, LiveContext) and context.regenerates else None


def placed_of(runtime: Runtime[Context]) -> Placed | None:
    """Return the chat client's part of this run, if a chat client asked for it."""
    context = runtime.context
    return context.placed if isinstance(context, LiveContext) else None


def chat_of(runtime: Runtime[Context]) -> ClientChat:
    """Return the client's chat; an empty one where no chat client asked."""
    placed = placed_of(runtime)
    return placed.chat if placed is not None else NO_CHAT


def rounds_of(runtime: Runtime[Context]) -> OpenRounds:
    """Return the store of the agent's part in rounds of a client's tools."""
    context = runtime.context
    return context.rounds if isinstance(context, LiveContext) else OpenRounds()


def is_stateless(runtime: Runtime[Context]) -> bool:
    """Tell whether the run belongs to no thread: nothing of it is stored."""
    context = runtime.context
    return isinstance(context, LiveContext) and not context.accepted.thread_id


NO_CHAT = ClientChat()
