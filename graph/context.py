"""The graph's context: the live things of one run. State holds values; nothing here is ever stored.

The schema that Studio sees has no fields, because a client-typed one makes its form disappear. The service passes a
`LiveContext`; without one (Studio), the nodes open the shared resources themselves and tell nobody.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from langgraph.runtime import Runtime

from graph.resources import Services, shared
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


class Silence:
    """A listener that nobody hears."""

    wants_tokens = False

    def recalled(self, memory: dict[str, Any]) -> None:
        """Ignore it."""

    def token(self, text: str) -> None:
        """Ignore it."""

    def saved(self, turn: Turn) -> None:
        """Ignore it."""


@dataclass(frozen=True)
class Context:
    """What Studio may give a run: nothing."""


@dataclass(frozen=True)
class LiveContext(Context):
    """What the service gives a run; `accepted` is the turn's message as it was stored."""

    services: Services
    listener: Listener
    accepted: Message


async def services_of(runtime: Runtime[Context]) -> Services:
    """The open services of this run: those that the service gave, else the shared ones."""
    context = runtime.context
    return context.services if isinstance(context, LiveContext) else await shared.get()


def listener_of(runtime: Runtime[Context]) -> Listener:
    """Who hears this run."""
    context = runtime.context
    return context.listener if isinstance(context, LiveContext) else Silence()


def accepted_of(runtime: Runtime[Context]) -> Message | None:
    """The turn's message, if it was stored before the run began."""
    context = runtime.context
    return context.accepted if isinstance(context, LiveContext) else None
