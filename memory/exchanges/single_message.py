"""Stores one message of a thread at a time: a user's begins a turn, an assistant's completes it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any
from uuid import uuid4

from recollect.memory.memory import Memory
from recollect.memory.plain_turn import complete
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.text import check_text
from recollect.memory.values.turn import Message


@frozen
class SingleMessage:
    """One message as it is given; `turn_id` and `metadata` are of a user's message alone.

    `agent_id`: the agent whose label a user's message gets, and whose alone an assistant's answers; None: any.
    """

    role: str
    content: str
    turn_id: str | None = None
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str | None = None


async def store_single(memory: Memory, scope: Scope, given: SingleMessage) -> Message:
    """Store the message, and return it as it is stored.

    Raises:
        InvalidRequest: the text cannot be stored, or an assistant's message has nothing to answer.
        TurnConflict: the turn_id belongs to another thread or message.
    """
    if given.role not in ("user", "assistant"):
        raise InvalidRequest(problems=[Problem("role", 'must be "user" or "assistant"')])
    check_text(given.content, field="content")
    async with memory.held(scope):
        if given.role == "assistant":
            return await complete(memory, scope, given.content, name=given.name, agent_id=given.agent_id)
        message = Message(
            user_id=scope.user_id,
            thread_id=scope.thread,
            turn_id=given.turn_id or str(uuid4()),
            role="user",
            content=given.content,
            created_at=memory.now(),
            name=given.name,
            metadata=dict(given.metadata),
            agent_id=given.agent_id,
        )
        return await memory.accept(message, agent_id=given.agent_id)
