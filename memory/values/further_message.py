"""Further messages of a turn that another agent ran: tool rounds, and a group's other speakers."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import iso

FurtherRole = Literal["user", "assistant", "system", "tool"]
MOST_FURTHER = 100
"""The most further messages of one turn."""


@frozen
class FurtherMessage:
    """One of them; `created_at` is UTC in whole milliseconds. Only those of role "user" are evidence for facts."""

    role: FurtherRole
    content: str
    created_at: datetime
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_json(self) -> dict[str, Any]:
        """Return the message as the HTTP contract shows it."""
        return {
            "role": self.role,
            "name": self.name,
            "content": self.content,
            "metadata": dict(self.metadata),
            "created_at": iso(self.created_at),
        }

    @classmethod
    def from_json(cls, shown: Mapping[str, Any]) -> "FurtherMessage":
        """Return the message that `as_json` shows."""
        at = datetime.fromisoformat(shown["created_at"])
        return cls(shown["role"], shown["content"], at, shown["name"], shown["metadata"])


def further_json(messages: Iterable[FurtherMessage]) -> dict[str, Any]:
    """Return the messages as `{"messages": […]}`, in their order."""
    return {"messages": [message.as_json() for message in messages]}


def read_further(shown: Mapping[str, Any]) -> tuple[FurtherMessage, ...]:
    """Return the messages of what `further_json` returned."""
    return tuple(FurtherMessage.from_json(one) for one in shown["messages"])
