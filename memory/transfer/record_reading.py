"""Checks client records of an export: open rounds of tools, and conversations that were made by hand.

The classes list the fields that code relies on; what else an object has is kept as it is.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

from recollect.memory.ports.client_records import MOST_RECORD_CHARACTERS, ClientRecord
from recollect.memory.transfer.plain_values import Unfit, from_plain
from recollect.memory.values.frozen import frozen


@frozen
class CalledFunction:
    """A function as a model called it; `arguments` is JSON as the model wrote it."""

    name: str
    arguments: str


@frozen
class ClientToolCall:
    """A call of a client's tool."""

    id: str
    function: CalledFunction


@frozen
class ChatMessage:
    """A message in OpenAI's form; its content is a text, or parts."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[Mapping[str, Any], ...]
    tool_calls: tuple[ClientToolCall, ...] | None = None
    tool_call_id: str | None = None


@frozen
class KeptResponse:
    """A part of a turn or of an open round: what is kept of its response."""

    rounds: tuple[ChatMessage, ...] = ()
    items: Mapping[str, str] | None = None
    instructions: str | None = None


@frozen
class _OpenRound:
    message: str
    metadata: Mapping[str, Any]
    history: tuple[ChatMessage, ...]
    exchange: tuple[ChatMessage, ...]
    proposals: tuple[Mapping[str, Any], ...]
    text: str
    tool_calls: tuple[ClientToolCall, ...]
    appends: bool
    follows: str | None
    model: str | None
    usage: Mapping[str, int] | None
    response: KeptResponse | None
    parts: tuple[Mapping[str, Any], ...] | None = None


@frozen
class _Conversation:
    metadata: Mapping[str, str] | None = None


def check_record(record: ClientRecord) -> None:
    """Check a record that comes from elsewhere.

    Raises:
        Unfit: its id, its time or its content is none that is stored.
    """
    if record.kind == "import":
        raise Unfit("kind must be open_round or conversation")
    if record.kind == "conversation":
        if record.id != f"conversation/{record.thread_id}":
            raise Unfit("id must be that of the thread's conversation")
        from_plain(_Conversation, record.content, path="content", is_open=True)
    else:
        if "/" in record.id or record.expires_at is None:
            raise Unfit("an open round must have an id without a slash, and expires_at")
        from_plain(_OpenRound, record.content, path="content", is_open=True)
    if len(json.dumps(record.content)) > MOST_RECORD_CHARACTERS:
        raise Unfit(f"content must have at most {MOST_RECORD_CHARACTERS:,} characters as JSON")
