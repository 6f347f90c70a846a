"""One running turn: its request, its events so far, and its outcome."""

import asyncio
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from typing_extensions import override

from recollect.graph.client_chat import ClientChat
from recollect.graph.context import Listener
from recollect.graph.history import KnownMessage
from recollect.graph.state import Json
from recollect.graph.walk import Begun
from recollect.memory.background.unread import may_go_unread
from recollect.memory.erasure.fences import Fence
from recollect.memory.options.model_choice import ModelChoice
from recollect.memory.recall.shown import SharedReads
from recollect.memory.updates.right_of_way import Passage
from recollect.memory.values.errors import RecollectError, TurnConflict
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, Turn

Piece = tuple[str, Json]
"""An event's name and data."""


@frozen
class TurnRequest:
    """One request for a turn. `turn_id` None: one is generated. `options` are the request's memory options as JSON.

    `agent_id` labels the turn with the agent that it is for.

    `regenerate`: the thread's last turn, which `turn_id` names, is regenerated from its stored message, with memory
    only if it was run so before. An unfinished one is simply run. `chat` is a chat client's part; without a thread the
    request is answered, and nothing of it is stored. `choice` is what the caller has chosen for the agent's model.
    """

    scope: Scope
    message: str
    turn_id: str | None = None
    metadata: Json = field(default_factory=dict[str, Any])
    options: Json = field(default_factory=dict[str, Any])
    agent_id: str | None = None
    wants_tokens: bool = False
    regenerate: bool = False
    chat: ClientChat | None = None
    choice: ModelChoice | None = None

    @property
    def bound_agent(self) -> str | None:
        """Return the agent that the caller's key is bound to: the turn sees what has its label alone."""
        return self.options.get("agent_id")


@frozen
class RunStart:
    """What a turn's run begins with: its message, and the fence that was observed before anything was read for it.

    `replaced` is the finished turn that is regenerated, `known` the part of a chat client's history that is stored,
    `begun` what is fetched already, `reads` what its fetches share.
    """

    message: Message
    fence: Fence
    replaced: Turn | None = None
    known: KnownMessage | None = None
    begun: Begun = field(default_factory=Begun)
    reads: SharedReads = field(default_factory=SharedReads)


class RunningTurn(Listener):
    """A running turn, which is also its graph's listener. Whoever follows it may leave at any time.

    `is_stored` says whether the turn is stored; until the turn has ended, whether it is going to be. `passage` is its
    part in the right of way.
    """

    def __init__(self, request: TurnRequest, turn_id: str, passage: Passage) -> None:
        self.request = request
        self.turn_id = turn_id
        self.passage = passage
        self.is_stored = request.scope.thread_id is not None
        self._accepted: asyncio.Future[None] = _future()
        self._finished: asyncio.Future[Turn] = _future()
        self._shown: list[Piece] = []
        self._followers: list[asyncio.Queue[Piece | None]] = []

    async def acceptance(self) -> None:
        """Wait until the message is stored or the turn was found finished; raise the turn's error if it failed."""
        await asyncio.shield(self._accepted)

    async def outcome(self) -> Turn:
        """Wait until the reply may go out, and return the stored turn; raise the turn's error if it failed."""
        return await asyncio.shield(self._finished)

    async def end(self) -> None:
        """Wait until the turn has its reply or has failed."""
        await asyncio.wait({self._finished})

    def follow(self) -> "asyncio.Queue[Piece | None]":
        """Return a queue of the turn's events from its beginning; None ends it."""
        queue: asyncio.Queue[Piece | None] = asyncio.Queue()
        for piece in self._shown:
            queue.put_nowait(piece)
        if self._finished.done():
            queue.put_nowait(None)
        else:
            self._followers.append(queue)
        return queue

    def message(self, *, created_at: datetime) -> Message:
        """Return the user's message as it is to be stored."""
        return Message(
            user_id=self.request.scope.user_id,
            thread_id=self.request.scope.thread_id or "",
            turn_id=self.turn_id,
            role="user",
            content=self.request.message,
            created_at=created_at,
            metadata=self.request.metadata,
            agent_id=self.request.agent_id,
        )

    def check_repeat(self, repeat: TurnRequest) -> None:
        """Raise TurnConflict unless `repeat`, which names the same turn, asks for the same."""
        is_anothers = repeat.bound_agent not in (None, self.request.agent_id)
        if repeat.scope != self.request.scope or repeat.message != self.request.message or is_anothers:
            raise TurnConflict(turn_id=self.turn_id)

    @property
    def is_answered(self) -> bool:
        """Tell whether the turn has its reply, and that is stored."""
        return self._finished.done() and self._finished.exception() is None and self.is_stored

    @property
    def is_over(self) -> bool:
        """Tell whether the turn has its reply or has failed."""
        return self._finished.done()

    @property
    def is_accepted(self) -> bool:
        """Tell whether its message is stored, or it goes on unstored."""
        return self._accepted.done()

    def is_of(self, scope: Scope) -> bool:
        """Tell whether the turn is the user's, and the thread's where `scope` names one."""
        own = self.request.scope
        return own.user_id == scope.user_id and scope.thread_id in (None, own.thread_id)

    @property
    def has_failed(self) -> bool:
        """Tell whether the turn ended without a reply: then a repeat runs it again."""
        return self._finished.done() and self._finished.exception() is not None

    @property
    def failure(self) -> str | None:
        """Return the code of the error that ended the turn; None where it has its reply."""
        error = self._finished.exception() if self._finished.done() else None
        return error.code if isinstance(error, RecollectError) else None

    @property
    @override
    def wants_tokens(self) -> bool:
        """Tell whether the reply's text should come in pieces."""
        return self.request.wants_tokens

    def accepted(self) -> None:
        """Mark the turn's message as stored."""
        self._accepted.set_result(None)

    @override
    def recalled(self, memory: Json) -> None:
        """Emit the recalled memory."""
        self._show(("memory", memory))

    @override
    def token(self, text: str) -> None:
        """Emit a piece of the reply."""
        if text:
            self._show(("token", {"text": text}))

    @override
    def tool_called(self, call: Json) -> None:
        """Emit a tool's call."""
        self._show(("tool_call", call))

    @override
    def tool_answered(self, result: Json) -> None:
        """Emit a tool's answer."""
        self._show(("tool_result", result))

    @override
    def saved(self, turn: Turn) -> None:
        """Take the committed turn, or the one found finished: the reply may go out."""
        if not self._shown:
            memory = turn.as_json()["memory"]
            self.recalled({name: part for name, part in memory.items() if name != "update"})
        elif turn.reply is not None and not any(name == "token" for name, _ in self._shown):
            self.token(turn.reply.content)
        if not self._accepted.done():
            self._accepted.set_result(None)
        if not self._finished.done():
            self._finished.set_result(turn)
        self._show(None)

    @override
    def answered(self, turn: Turn) -> None:
        """Take an answer of which nothing is stored."""
        self.is_stored = False
        self.saved(turn)

    def means(self, turn_id: str, *, regenerate: bool) -> None:
        """Become the stored turn `turn_id`, which goes on, or is regenerated."""
        self.turn_id = turn_id
        self.request = replace(self.request, turn_id=turn_id, regenerate=regenerate)

    def brings(self, chat: ClientChat) -> None:
        """Take `chat` in place of the request's own."""
        self.request = replace(self.request, chat=chat)

    def failed(self, error: RecollectError) -> None:
        """End the turn without a reply; a turn that was accepted can be repeated."""
        if self._finished.done():
            return
        if not self._accepted.done():
            self._accepted.set_exception(error)
        elif error.turn_id is None:
            error.turn_id = self.turn_id
        self.is_stored = False  # the user's message alone may be, which waits for a repeat
        self._finished.set_exception(error)
        self._show(None)

    def _show(self, piece: Piece | None) -> None:
        if piece is not None:
            self._shown.append(piece)
        for queue in self._followers:
            queue.put_nowait(piece)


def _future() -> "asyncio.Future[Any]":
    """Return a future whose error may go unread, because the requester may have left."""
    return may_go_unread(asyncio.get_running_loop().create_future())
