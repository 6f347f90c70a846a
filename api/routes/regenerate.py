"""`POST /api/turns/{turn_id}/regenerate`: regenerates the last turn of a thread."""

from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool

from recollect.api.auth.caller import ANYBODY, Caller, UserId, WhoCalls
from recollect.api.json_answer import JsonAnswer
from recollect.api.routes.agent import STREAMED
from recollect.api.routes.filters import LABELLED
from recollect.api.schemas.answers import EXAMPLE_TURN, TurnAnswer
from recollect.api.schemas.requests import Id, MemoryOptions
from recollect.api.sse import stream_turn
from recollect.api.state import OpenMemory, OpenTurns
from recollect.graph.running_turn import TurnRequest
from recollect.memory.values.errors import NotFound
from recollect.memory.values.turn import Turn

router = APIRouter(tags=["turns"], dependencies=[LABELLED])


def _as_before(options: MemoryOptions) -> MemoryOptions:
    if not options.enabled:
        raise ValueError("`enabled` is what it was when the turn was first run; leave it out")
    return options


class RegenerateRequest(BaseModel):
    """How to answer anew. Whether the turn runs with memory is as it was."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"stream": False, "memory": {"top_k": 8}}]}
    )

    stream: StrictBool = Field(False, description="Answer as text/event-stream.")
    wait_for_memory: StrictBool = Field(False, description="Answer once the turn was learned from.")
    memory: Annotated[MemoryOptions, AfterValidator(_as_before)] = MemoryOptions.model_validate({})


@router.post(
    "/api/turns/{turn_id}/regenerate",
    response_model=None,
    summary="Answer a thread's last turn anew",
    description=(
        "The same message under the same `turn_id`, recalled, answered and learned from once more. The old answer "
        "stays until the new one is stored; then its episode and what it taught are replaced, except for facts that a "
        "person or a later turn has changed since. A turn that is not its thread's last one is 409 `not_last_turn`, an "
        "unfinished one is run. " + STREAMED
    ),
    responses={
        200: {
            "model": TurnAnswer,
            "content": {"application/json": {"example": EXAMPLE_TURN}, "text/event-stream": {}},
        }
    },
)
async def regenerate_turn(
    turn_id: Id,
    user_id: UserId,
    turns: OpenTurns,
    memory: OpenMemory,
    caller: WhoCalls,
    body: RegenerateRequest | None = None,
) -> JsonAnswer | StreamingResponse:
    """Return the turn with its new answer, as `POST /api/agent` answers it."""
    wish = body or RegenerateRequest.model_validate({})
    stored = await memory.find_turn(user_id=user_id, turn_id=turn_id)
    if stored is None:
        raise NotFound("There is no such turn of this user.")
    running = turns.start(request_again(stored, wish, caller))
    await running.acceptance()
    if wish.stream:
        return stream_turn(memory, running, wait_for_memory=wish.wait_for_memory)
    turn = await running.outcome()
    if wish.wait_for_memory:
        turn = await memory.learned(turn)
    return JsonAnswer(turn.as_json())


def request_again(stored: Turn, wish: RegenerateRequest, caller: Caller = ANYBODY) -> TurnRequest:
    """Return the request to answer a stored turn anew."""
    return TurnRequest(
        scope=stored.message.scope,
        message=stored.message.content,
        turn_id=stored.message.turn_id,
        metadata=dict(stored.message.metadata),
        options=caller.options(wish.memory.model_dump()),
        agent_id=stored.message.agent_id,
        wants_tokens=wish.stream,
        regenerate=True,
    )
