"""`POST /api/context`."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.schemas.answers import ContextAnswer
from recollect.api.schemas.requests import ContextRequest
from recollect.api.state import OpenMemory
from recollect.memory.recall.turn_context import context_for
from recollect.memory.recall.turn_options import read_options
from recollect.memory.values.scope import Scope

router = APIRouter(tags=["agent"])


@router.post(
    "/api/context",
    response_model=None,
    summary="What a turn would be given, for an agent elsewhere",
    description=(
        "The memory block for the system message, and its parts: facts, notes, summary, window and hits. Nothing is "
        "stored; an unknown user or thread has an empty context. Store what was said with `POST /api/exchanges`."
    ),
    responses={200: {"model": ContextAnswer}},
)
async def get_context(body: ContextRequest, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Return the context of a turn with this message."""
    scope = Scope(caller.acts_for(body.user_id), body.thread_id)
    memory.check_message(body.message)
    options = read_options(caller.options(body.memory.model_dump()), memory.config)
    return JSONResponse((await context_for(memory.recall, scope, body.message, options)).as_json())
