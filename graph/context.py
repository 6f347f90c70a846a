"""The graph's context: the live things of one run. State holds values; nothing here is ever stored.

The schema that Studio sees has no fields, because a client-typed one makes its form disappear. The service passes a
`LiveContext`; without one (Studio), the nodes open the shared resources themselves and tell nobody.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from langgraph.runtime import Runtime

from graph.client_chat import ClientChat, Placed
from graph.open_rounds import OpenRounds
from graph.resources import Services, shared
from memory.fences import Fence
from memory.turn import Message, Turn


class Listener(Protocol):
    """Hears what a turn does while it runs."""

    @property
    def wants_tokens(self) -> bool:
        """Whether the reply's text should come in pieces."""
        ...

    def recalled(self, memory: dict[str, Any]) -> None:
        """Memory was fetched: `memory` as the reply will show it, without its update."""
        ...

    def token(self, text: str) -> None:
        """A piece of the reply's text."""
        ...

    def saved(self, turn: Turn) -> None:
        """The turn is committed: the reply may go out."""
        ...

    def answered(self, turn: Turn) -> None:
        """There is an answer of which nothing is stored: it may go out. `turn` is as it would have been stored."""
        ...


class Silence:
    """A listener that nobody hears."""

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
    """What the service gives a run; `accepted` is the turn's message as it was stored.

    Its `position` is 0 where it is to be stored with the answer, and it has no thread where nothing is to be stored.
    `regenerates`: the turn has an answer already, which this run replaces. `placed` is what a chat client brought,
    `rounds` where the agent's part in calls of its tools waits. `fence` was opened before anything was read for it.
    """

    services: Services
    listener: Listener
    accepted: Message
    regenerates: bool = False
    placed: Placed | None = None
    fence: Fence | None = None
    rounds: OpenRounds = field(default_factory=OpenRounds)


def fence_of(runtime: Runtime[Context]) -> Fence | None:
    """What keeps this run from writing once its user was erased; None where nobody opened one (Studio)."""
    context = runtime.context
    return context.fence if isinstance(context, LiveContext) else None


async def services_of(runtime: Runtime[Context]) -> Services:
    """The open services of this run: those that the service gave, else the shared ones."""
    context = runtime.context
    return context.services if isinstance(context, LiveContext) else await shared.get()


def listener_of(runtime: Runtime[Context]) -> Listener:
    """Who hears this run."""
    context = runtime.context
    return context.listener if isinstance(context, LiveContext) else Silence()


def accepted_of(runtime: Runtime[Context]) -> Message | None:
    """The turn's message, if the service took it before the run began."""
    context = runtime.context
    return context.accepted if isinstance(context, LiveContext) else None


def regenerated_of(runtime: Runtime[Context]) -> str | None:
    """The turn that this run answers anew, if it does: what it said and taught before is not to be recalled."""
    context = runtime.context
    return context.accepted.turn_id if isinstance(context, LiveContext) and context.regenerates else None


def placed_of(runtime: Runtime[Context]) -> Placed | None:
    """What a chat client brought to this run, if one did."""
    context = runtime.context
    return context.placed if isinstance(context, LiveContext) else None


def chat_of(runtime: Runtime[Context]) -> ClientChat:
    """The chat client's wishes; none where no chat client asks."""
    placed = placed_of(runtime)
    return placed.chat if placed is not None else NO_CHAT


def rounds_of(runtime: Runtime[Context]) -> OpenRounds:
    """Where the agent's part in rounds of a client's tools waits."""
    context = runtime.context
    return context.rounds if isinstance(context, LiveContext) else OpenRounds()


def is_stateless(runtime: Runtime[Context]) -> bool:
    """Whether the run belongs to no thread: nothing of it is stored."""
    context = runtime.context
    return isinstance(context, LiveContext) and not context.accepted.thread_id


NO_CHAT = ClientChat()
