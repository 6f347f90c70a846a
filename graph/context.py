"""The graph's context: the open services and callbacks of one run. State holds values; nothing here is ever stored.

The schema that Studio sees has no fields, because a client-typed one makes its form disappear. The service passes a
`LiveContext`; without one (Studio), the nodes open the shared resources themselves and report to no listener.
"""

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Any, Protocol

from typing_extensions import override

from recollect.graph.client_chat import ClientChat, Placed
from recollect.graph.open_rounds import OpenRounds
from recollect.graph.resources import Services, shared
from recollect.memory.erasure.fences import Fence
from recollect.memory.options.model_choice import ModelChoice
from recollect.memory.recall.shown import SharedReads
from recollect.memory.updates.right_of_way import Passage
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Message, Turn


class Listener(Protocol):
    """Receives a turn's events while it runs."""

    @property
    @abstractmethod
    def wants_tokens(self) -> bool:
        """Tell whether the reply's text should come in pieces."""
        ...

    @abstractmethod
    def recalled(self, memory: dict[str, Any]) -> None:
        """Take the recalled `memory`, as the reply will show it but for its update."""
        ...

    @abstractmethod
    def token(self, text: str) -> None:
        """Take a piece of the reply's text."""
        ...

    @abstractmethod
    def tool_called(self, call: dict[str, Any]) -> None:
        """Take a tool's call, as it begins: {"id", "name", "args"}."""
        ...

    @abstractmethod
    def tool_answered(self, result: dict[str, Any]) -> None:
        """Take what a tool answered: {"id", "name", "content"}."""
        ...

    @abstractmethod
    def saved(self, turn: Turn) -> None:
        """Take the committed turn: the reply may go out."""
        ...

    @abstractmethod
    def answered(self, turn: Turn) -> None:
        """Take an answer of which nothing is stored: it may go out. `turn` is as it would have been stored."""
        ...


class Silence(Listener):
    """A listener that ignores every event."""

    @property
    @override
    def wants_tokens(self) -> bool:
        """Return False."""
        return False

    @override
    def recalled(self, memory: dict[str, Any]) -> None:
        """Ignore it."""

    @override
    def token(self, text: str) -> None:
        """Ignore it."""

    @override
    def tool_called(self, call: dict[str, Any]) -> None:
        """Ignore it."""

    @override
    def tool_answered(self, result: dict[str, Any]) -> None:
        """Ignore it."""

    @override
    def saved(self, turn: Turn) -> None:
        """Ignore it."""

    @override
    def answered(self, turn: Turn) -> None:
        """Ignore it."""


@frozen
class Context:
    """What Studio may give a run: nothing."""


NO_CHAT = ClientChat()


@frozen
class LiveContext(Context):
    """The live things of one run; `accepted` is the turn's message as it was stored before the run began.

    `accepted.position` is 0 where the message is stored with the answer; its `thread_id` is empty where nothing is
    stored. `regenerates`: the turn has an answer already, which this run replaces. `placed` is a chat client's part of
    the turn, `rounds` keeps the agent's part in calls of its tools. `choice` is what the caller has chosen for the
    agent's model. `fence`, which refuses the run's writes once its user was erased, was observed before anything was
    read for the run. `passage` is the turn's part in the right of way. `reads` is what its nodes share. Studio's
    runs have the services alone.
    """

    services: Services
    listener: Listener = field(default_factory=Silence)
    accepted: Message | None = None
    regenerates: bool = False
    placed: Placed | None = None
    choice: ModelChoice | None = None
    fence: Fence | None = None
    passage: Passage | None = None
    rounds: OpenRounds = field(default_factory=OpenRounds)
    reads: SharedReads = field(default_factory=SharedReads)

    @property
    def regenerated(self) -> str | None:
        """Return the id of the turn that is regenerated, if any: its previous answer and facts are not recalled."""
        return self.accepted.turn_id if self.accepted is not None and self.regenerates else None

    def resting(self) -> AbstractContextManager[None]:
        """Let updates of earlier turns go on inside the block, in which the turn's model answers."""
        return self.passage.resting() if self.passage is not None else nullcontext()

    @property
    def chat(self) -> ClientChat:
        """Return the client's chat; an empty one where no chat client asked."""
        return self.placed.chat if self.placed is not None else NO_CHAT

    @property
    def is_stateless(self) -> bool:
        """Tell whether the run belongs to no thread: nothing of it is stored."""
        return self.accepted is not None and not self.accepted.thread_id


class Runtime(Protocol):
    """What a node is given beside the state. LangGraph's own `Runtime` is one."""

    @property
    @abstractmethod
    def context(self) -> Context:
        """Return the run's context."""
        ...


async def live_context(runtime: Runtime) -> LiveContext:
    """Return what the service gave the run; without a service (Studio), the shared services."""
    context = runtime.context
    return context if isinstance(context, LiveContext) else LiveContext(await shared.get())
