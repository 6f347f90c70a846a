"""A chat client's part of a turn beside the user's message: its own history, tools and parameters for the model."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from recollect.graph.history import KnownMessage
from recollect.graph.state import Json
from recollect.memory.values.frozen import frozen

Unkept = Literal["no_thread", "store_false", "chore"]
"""Why nothing is stored of a request: it names no thread, the client does not want it, or it is a front end's own."""


@frozen
class ClientChat:
    """One request of a chat client. Messages and tools are in OpenAI's form.

    `history` are the messages before the user's, `rounds` those behind it: calls of the client's tools and their
    results. `content` is the user's message in parts, where it is more than text. `parameters` go to the model as they
    are; `model` and `api_key` stand in for the configured ones. `unkept` says why nothing of the request is stored.

    `appends`: the client leaves its history to the thread, so that the request is a new turn even where it repeats the
    last one; `follows` is the turn that it continues, where the client names one. `response` is kept with the turn's
    result under `response`, and with a round that ends in calls of the client's tools, which is then kept in the store.
    `proposals` are what the agent proposed in such rounds before. `is_derived`: the thread was found by the history, so
    that turns which the history has left are superseded.
    """

    history: tuple[Json, ...] = ()
    rounds: tuple[Json, ...] = ()
    content: list[Json] | None = None
    tools: tuple[Json, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    unkept: Unkept | None = None
    appends: bool = False
    follows: str | None = None
    response: Mapping[str, Any] | None = None
    proposals: tuple[Json, ...] = ()
    is_derived: bool = False

    @property
    def stores_late(self) -> bool:
        """Tell whether the user's message is stored with the answer: a round that ends in tool calls stores nothing."""
        return bool(self.tools or self.rounds)

    @property
    def wants_json(self) -> bool:
        """Tell whether the reply must be JSON, so that text said between tool calls may not be part of it."""
        wanted: Mapping[str, Any] = self.parameters.get("response_format") or {}
        return wanted.get("type") in {"json_object", "json_schema"}

    @property
    def tool_names(self) -> list[str]:
        """Return the names of the client's tools."""
        return [tool["function"]["name"] for tool in self.tools]


@frozen
class Placed:
    """A client's chat, with the stored messages that its history repeats."""

    chat: ClientChat
    known: KnownMessage = field(default_factory=KnownMessage)
