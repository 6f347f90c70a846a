"""Streams a turn to the page "Talk": events as those of `POST /api/agent`, whose data are parts of the page."""

from collections.abc import AsyncIterator

from fastapi.responses import StreamingResponse

from recollect.api.errors import error_body
from recollect.api.inspector.rendering import rendered
from recollect.api.inspector.talk_turn import recalled_of, share_of, turn_fields
from recollect.api.sse import KEEP_ALIVE, STREAM_HEADERS, event, pieces
from recollect.graph.running_turn import RunningTurn
from recollect.graph.state import Json
from recollect.memory.memory import Memory
from recollect.memory.values.errors import RecollectError


def stream_talk(memory: Memory, running: RunningTurn) -> StreamingResponse:
    """Return the response of a turn that was accepted.

    `turn` says that its words are stored; `memory` holds what was recalled, `message` the whole turn and `error` a
    notice, each as `html`; `token` holds `text`, `tool_call` the tool's `name`.
    """
    return StreamingResponse(_events(memory, running), media_type="text/event-stream", headers=STREAM_HEADERS)


async def _events(memory: Memory, running: RunningTurn) -> AsyncIterator[str]:
    user = running.request.scope.user_id
    yield event("turn", {"turn_id": running.turn_id})
    try:
        async for piece in pieces(running):
            yield KEEP_ALIVE if piece is None else _shown(*piece, user)
        turn = turn_fields(memory, await running.outcome())
        yield event("message", {"html": rendered("talk_turn.html", turn=turn, user=user, most=share_of([turn]))})
    except RecollectError as error:
        yield event("error", {"html": rendered("error.html", part="notice", **error_body(error))})


def _shown(name: str, data: Json, user: str) -> str:
    """Return an event of the running turn as the page takes it."""
    if name == "tool_call":
        data = {"name": data["name"]}
    elif name == "tool_result":
        data = {}
    elif name == "memory":
        data = {"html": rendered("talk_recalled.html", recalled=recalled_of(data), user=user)}
    return event(name, data)
