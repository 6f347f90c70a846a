"""`POST /api/memory/search`."""

from dataclasses import replace
from time import perf_counter
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.schemas.answers import SearchAnswer
from recollect.api.schemas.requests import SearchRequest
from recollect.api.state import OpenMemory
from recollect.memory.values.scope import Scope

router = APIRouter(tags=["memory"])


@router.post(
    "/api/memory/search",
    response_model=None,
    summary="Search a user's memory",
    description=(
        "Messages, facts that hold now, summaries of archived threads and passages of documents, best first. With "
        "`explain`, `trace` gives each candidate's score of every stage and, for those left out, where and why."
    ),
    responses={200: {"model": SearchAnswer}},
)
async def search(body: SearchRequest, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Return the hits, and how long they took in milliseconds."""
    started = perf_counter()
    scope = Scope(caller.acts_for(body.user_id), body.thread_id)
    memory.check_message(body.query, field="query")
    options = body.options(memory.config)
    options = replace(options, filter=caller.narrowed(options.filter))
    recalled = await memory.recall.find(scope, body.query, options, now=body.now)
    took = round((perf_counter() - started) * 1000, 3)
    answer: dict[str, Any] = {"hits": [hit.as_json() for hit in recalled.hits], "took_ms": took}
    answer |= {**recalled.degraded_json, **recalled.filter_json}
    return JSONResponse({**answer, "trace": recalled.trace_json()} if body.explain else answer)
