"""`/api/admin/eval`: measures what searches find, by cases."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import ADMIN_ONLY, UserId
from recollect.api.schemas.evaluation import EvalAnswer, EvalRequest, ProposedAnswer
from recollect.api.state import OpenMemory
from recollect.memory.evaluation.proposing import MOST_PROPOSED

Count = Annotated[int, Query(ge=1, le=MOST_PROPOSED, description="Most cases.")]

router = APIRouter(prefix="/api/admin/eval", tags=["admin"], dependencies=[ADMIN_ONLY])


@router.post(
    "",
    response_model=None,
    summary="Measure what searches find",
    description="Runs each case as `POST /api/memory/search` with the service's settings and 25 hits, and says how "
    "much of what is expected was found, and why the rest was not. With `compare` it runs them again, with those "
    "settings.",
    responses={200: {"model": EvalAnswer}},
)
async def post_eval(request: EvalRequest, memory: OpenMemory) -> JSONResponse:
    """Run the cases."""
    cases = [one.case(number) for number, one in enumerate(request.cases, 1)]
    for number, case in enumerate(cases):
        memory.check_message(case.query, field=f"cases.{number}.query")
    if request.compare is None:
        return JSONResponse(await memory.evaluation.run(cases))
    return JSONResponse(await memory.evaluation.compare(cases, request.compare.changes()))


@router.get(
    "/cases",
    response_model=None,
    summary="Propose cases",
    description="From the user's own history: what facts quote, days with few messages, names that few messages have.",
    responses={200: {"model": ProposedAnswer}},
)
async def get_cases(user_id: UserId, memory: OpenMemory, count: Count = 50) -> JSONResponse:
    """Return proposed cases."""
    proposed = await memory.evaluation.propose(user_id, count=count)
    return JSONResponse({"items": [case.as_json() for case in proposed]})
