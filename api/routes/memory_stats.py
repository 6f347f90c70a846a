"""`GET /memory-stats`."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from recollect.api.auth.agent_bounds import COUNTS, check_whole_user
from recollect.api.auth.caller import WhoCalls
from recollect.api.schemas.requests import WHOSE, Id
from recollect.api.state import OpenMemory
from recollect.memory.opening.figures import figures
from recollect.memory.values.scope import Scope

router = APIRouter(tags=["memory"])


class StatsAnswer(BaseModel):
    """How much there is; see the route for whose."""

    users: int = Field(description="Who has anything; of one user, or session, 1 where any other figure is above 0.")
    threads: int
    turns: int = Field(description="Finished ones.")
    messages: int = Field(description="Those of unfinished turns too.")
    facts: int = Field(description="What is known now, working memory too; of a session its own.")
    documents: int = Field(description="Of a session those attached to it.")
    points: int = Field(description="Entries of the vector index.")
    pending: int = Field(description="Turns that are still being learned from, or indexed.")


@router.get(
    "/memory-stats",
    response_model=None,
    summary="How much is remembered",
    description=(
        "Of one user, or with `session_id` of one of their threads; without either of the whole service, for "
        "administrators alone, else 403 `forbidden`. A key of one user's own is about that user."
    ),
    responses={200: {"model": StatsAnswer}},
)
async def get_stats(
    caller: WhoCalls,
    memory: OpenMemory,
    user_id: Annotated[Id | None, Query(description=WHOSE)] = None,
    session_id: Annotated[Id | None, Query(description="That thread of the user's alone.")] = None,
) -> JSONResponse:
    """Return the figures."""
    check_whole_user(caller, COUNTS)
    if user_id is None and session_id is None and caller.user_id is None:
        caller.check_admin()
        scope = None
    else:
        scope = Scope(caller.acts_for(user_id), session_id)
    return JSONResponse(await figures(memory, scope))
