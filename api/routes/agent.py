"""`POST /api/agent`."""

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.json_answer import JsonAnswer
from recollect.api.schemas.requests import AgentRequest
from recollect.api.schemas.schema_names import answer_of
from recollect.api.sse import stream_turn
from recollect.api.state import OpenServices, OpenTurns
from recollect.graph.resources import Services
from recollect.graph.running_turn import TurnRequest
from recollect.memory.options.model_choice import ModelChoice, check_choice, read_choice
from recollect.memory.values.errors import InvalidRequest, Problem
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
    responses={200: {"content": {**answer_of("TurnAnswer")["content"], "text/event-stream": {}}}},
)
async def run_agent(
    body: AgentRequest, turns: OpenTurns, services: OpenServices, caller: WhoCalls
) -> JsonAnswer | StreamingResponse:
    """Start the turn; answer once it is stored, or stream it."""
    memory, choice = services.memory, await _chosen(body, services)
    running = turns.start(
        TurnRequest(
            scope=Scope(caller.acts_for(body.user_id), body.thread_id),
            message=body.message,
            turn_id=body.turn_id,
            metadata=body.metadata,
            agent_id=caller.label(body.agent_id),
            options=caller.options(body.memory.model_dump()),
            wants_tokens=body.stream,
            choice=choice,
        )
    )
    await running.acceptance()
    if body.stream:
        return stream_turn(memory, running, wait_for_memory=body.wait_for_memory)
    turn = await running.outcome()
    if body.wait_for_memory:
        turn = await memory.learned(turn)
    return JsonAnswer(turn.as_json())


async def _chosen(body: AgentRequest, services: Services) -> ModelChoice | None:
    """Return what the request chooses for the agent's model; an AGENT decides itself what it makes of that.

    Raises:
        InvalidRequest: names each field that is not allowed, or not valid.
    """
    given = body.choice()
    if not given:
        return None
    if not services.allows_choice:
        problems = [Problem(name, "is taken only where ALLOW_MODEL_CHOICE is true") for name in given]
        raise InvalidRequest(f"The request is not valid: see {', '.join(given)}.", problems=problems)
    choice = read_choice(**given)
    if services.agent is None:
        await check_choice(services.memory.chat, choice)
    return choice
