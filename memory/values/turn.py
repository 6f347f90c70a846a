"""A turn: one exchange of a thread. The user's message opens it, the assistant's message commits it."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal
from uuid import UUID, uuid5

from recollect.memory.values.frozen import frozen
from recollect.memory.values.further_message import FurtherMessage, further_json
from recollect.memory.values.left_out import read_record
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import iso
from recollect.memory.values.tool_use import shown_use, uses_of
from recollect.memory.values.update import Step, StepName, Update

Role = Literal["user", "assistant"]

UNFINISHED_RESULT: Mapping[str, Any] = {
    "model": None,
    "memory": {"window": 0, "facts": {}, "summary": None, "hits": [], "degraded": []},
    "usage": {"input_tokens": 0, "output_tokens": 0},
    "timings_ms": {"recall": 0.0, "agent": 0.0, "total": 0.0},
}
"""The result that a turn without a reply shows."""
RECORDED = "recorded"
"""The key of a result under which a turn keeps what explains it: ids, scores and reasons, and no text.

`window_from` is the position of the oldest message that the window showed; `left_out` holds the candidates that the
search left out (see `left_out.record_of`; None where nothing was searched), `block` the order of the memory block (see
`memory_block.Block.record`; None where the agent built a prompt of its own).
"""
MOST_TRACED = 20
"""The most candidates of a search whose traces a turn shows, the hits' first."""

_NAMESPACE = UUID("6f1c7c0e-0d52-5b0a-9a3e-7d1f0a4b8c21")


@functools.lru_cache(maxsize=4_096)
def derived_id(user_id: str, turn_id: str, part: str) -> str:
    """Return the deterministic UUID of one part of a turn: uuid5(user_id, turn_id, part).

    Ids never hold "/", so no two triples collide. A message's part is its role; the UUID is also its point's id.
    """
    return str(uuid5(_NAMESPACE, f"{user_id}/{turn_id}/{part}"))


@frozen
class Message:
    """One stored message.

    `position` orders the messages of a thread: from 1, gaps allowed, the user's message odd and its reply one above, so
    that a repeated turn keeps its position; 0 until the store has assigned one. `created_at` is UTC in whole
    milliseconds. `imported_id` is the id that an importer gave it. A turn always has both messages: where an import
    knew only one of them, the other is `absent`, has no text, and is never shown, searched or counted.

    `further` are the messages between a user's message and its reply, of a turn that another agent ran; `place` counts
    them from 1 where one of them is shown as a message of its own. `agent_id` labels both messages with the agent that
    the turn was for.
    """

    user_id: str
    thread_id: str
    turn_id: str
    role: Role
    content: str
    created_at: datetime
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    position: int = 0
    imported_id: str | None = None
    absent: bool = False
    further: tuple[FurtherMessage, ...] = ()
    place: int = 0
    agent_id: str | None = None

    @property
    def id(self) -> str:
        """The message's id, and its point's id in the vector index."""
        return derived_id(self.user_id, self.turn_id, f"further:{self.place}" if self.place else self.role)

    @property
    def evidence(self) -> str:
        """Return the user's own words of the turn: this message, and the further ones of role "user"."""
        return "\n\n".join([self.content, *(one.content for one in self.further if one.role == "user")])

    @property
    def spoken(self) -> "tuple[Message, ...]":
        """Return the message, and the further ones that a person or an agent spoke, each as a message of its own."""
        if not self.further:
            return (self,)
        own = replace(self, further=())
        return (own, *(_spoken(own, one, place) for place, one in enumerate(self.further, start=1) if _is_spoken(one)))

    @property
    def point_ids(self) -> list[str]:
        """Return the ids of all points of the turn that this user's message began, its reply's too."""
        return [*(said.id for said in self.spoken), derived_id(self.user_id, self.turn_id, "assistant")]

    @property
    def scope(self) -> Scope:
        """The user and thread that it belongs to."""
        return Scope(self.user_id, self.thread_id)

    def as_json(self) -> dict[str, Any]:
        """Return the message as the HTTP contract shows it."""
        shown: dict[str, Any] = {
            "id": self.id,
            "turn_id": self.turn_id,
            "role": self.role,
            "name": self.name,
            "content": self.content,
            "metadata": dict(self.metadata),
            "created_at": iso(self.created_at),
        }
        if self.agent_id is not None:
            shown["agent_id"] = self.agent_id
        return {**shown, **further_json(self.further)} if self.further else shown


def _is_spoken(message: FurtherMessage) -> bool:
    """Tell whether the message is words of the conversation: a tool's results without its calls mean nothing."""
    return message.role in ("user", "assistant") and bool(message.content)


def _spoken(own: Message, message: FurtherMessage, place: int) -> Message:
    return replace(
        own,
        role="assistant" if message.role == "assistant" else "user",
        content=message.content,
        created_at=message.created_at,
        name=message.name,
        metadata=message.metadata,
        imported_id=None,
        place=place,
    )


@frozen
class Exchange:
    """A finished turn as the window shows it: its two messages."""

    user: Message
    assistant: Message

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages that are not absent, the user's first."""
        return tuple(message for message in (self.user, self.assistant) if not message.absent)

    @property
    def spoken(self) -> tuple[Message, ...]:
        """Return all that was said in the turn, in its order: the messages, with the further ones between them."""
        return tuple(message for message in (*self.user.spoken, self.assistant) if not message.absent)


@frozen
class Turn:
    """A turn as it is stored. `reply`, `result` and `update` are None while it is unfinished.

    `result` is plain JSON: the answer apart from its texts (model, usage, timings, what was recalled, which tools were
    used). It is stored with the reply and read back unchanged.
    """

    message: Message
    reply: Message | None = None
    result: Mapping[str, Any] | None = None
    update: Update | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The stored messages that are not absent, the user's first; an unfinished turn has no reply."""
        stored = (self.message,) if self.reply is None else (self.message, self.reply)
        return tuple(message for message in stored if not message.absent)

    @property
    def spoken(self) -> tuple[Message, ...]:
        """Return all that was said in the turn and search may find: its messages, the further ones between them."""
        return tuple(said for message in self.messages for said in message.spoken)

    def as_json(self) -> dict[str, Any]:
        """Return the turn as the HTTP contract shows it; an unfinished one has no reply and `state` "unfinished"."""
        result = self.result or UNFINISHED_RESULT
        update = self.update or Update(steps={"facts": Step()})
        shown: dict[str, Any] = {
            "turn_id": self.message.turn_id,
            "user_id": self.message.user_id,
            "thread_id": self.message.thread_id,
            "reply": self.reply.content if self.reply is not None and not self.reply.absent else None,
            "model": result["model"],
            "memory": {**result["memory"], "update": update.as_json()},
            "tools": [shown_use(use) for use in uses_of(result)],
            "usage": result["usage"],
            "timings_ms": result["timings_ms"],
        }
        if self.message.further:
            shown |= further_json(self.message.further)
        return shown if self.reply is not None else {**shown, "state": "unfinished"}

    def explained_json(self, deferred: Mapping[StepName, datetime | None] = MappingProxyType({})) -> dict[str, Any]:
        """Return the turn as JSON with its `trace`, and with its update's `steps` while that is pending or has failed.

        `deferred` maps steps that wait for other turns to the time at which they run at the latest. The `trace`, of a
        turn that searched, says how the best candidates were scored, and why some were dropped. `trace_id` names the
        OpenTelemetry trace of a turn that was traced.
        """
        shown, trace = self.as_json(), self._trace()
        more: dict[str, Any] = {"trace": trace} if trace else {}
        if self.update is not None and self.update.status in {"pending", "failed"}:
            update = self.update.deferred(deferred)
            steps = {name: step.as_json() for name, step in update.steps.items()}
            more["update"] = {**update.as_json(), "steps": steps}
        traced = (self.result or {}).get("trace_id")
        named = {} if traced is None else {"trace_id": traced}
        return {**shown, **named, "memory": {**shown["memory"], **more}}

    @property
    def record(self) -> Mapping[str, Any]:
        """Return what explains the turn, see `RECORDED`; {} where it has none."""
        kept: Mapping[str, Any] = (self.result or {}).get(RECORDED) or {}
        return kept

    def _trace(self) -> Sequence[Mapping[str, Any]]:
        """Return the traces of the best candidates, the hits' first; an older turn keeps all of them in `trace`."""
        result = self.result or {}
        left_out = read_record(self.record.get("left_out") or {})
        return [*result.get("trace", ()), *(one.as_trace() for one in left_out)][:MOST_TRACED]
