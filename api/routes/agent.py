"""`POST /api/agent`."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, StreamingResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.schemas.answers import EXAMPLE_TURN, TurnAnswer
from recollect.api.schemas.requests import AgentRequest
from recollect.api.sse import stream_turn
from recollect.api.state import OpenMemory, OpenTurns
from recollect.graph.running_turn import TurnRequest
from recollect.memory.values.scope import Scope

router = APIRouter(tags=["agent"])

STREAMED = (
    "With `stream: true` the answer is `text/event-stream`: `turn` (`turn_id`), `memory` (what was recalled), `token` "
    '(`{"text"}`), for each tool that the agent uses `tool_call` (`{"id", "name", "args"}`) and `tool_result` '
    '(`{"id", "name", "content"}`), `message` (the whole result), with `wait_for_memory` also `update`, then '
    "`done`; or `error`."
)


@router.post(
    "/api/agent",
    response_model=None,
    summary="Run one turn of the agent",
    description="Recall, answer, store, and learn afterwards. " + STREAMED,
    responses={
        200: {
            "model": TurnAnswer,
            "content": {"application/json": {"example": EXAMPLE_TURN}, "text/event-stream": {}},
        }
    },
)
async def run_agent(
    body: AgentRequest, turns: OpenTurns, memory: OpenMemory, caller: WhoCalls
) -> JSONResponse | StreamingResponse:
    """Start the turn; answer once it is stored, or stream it."""
    running = turns.start(
        TurnRequest(
            scope=Scope(caller.acts_for(body.user_id), body.thread_id),
            message=body.message,
            turn_id=body.turn_id,
            metadata=body.metadata,
            agent_id=body.agent_id,
            options=body.memory.model_dump(),
            wants_tokens=body.stream,
        )
    )
    await running.acceptance()
    if body.stream:
        return stream_turn(memory, running, wait_for_memory=body.wait_for_memory)
    turn = await running.outcome()
    if body.wait_for_memory:
        turn = await memory.learned(turn)
    return JSONResponse(turn.as_json())
