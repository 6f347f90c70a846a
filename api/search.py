"""`POST /api/memory/search`."""

from time import perf_counter

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from api.answers import SearchAnswer
from api.schemas import SearchRequest
from api.state import OpenMemory
from memory.finding import KINDS, find
from memory.recall import RecallOptions
from memory.scope import Scope

router = APIRouter(tags=["memory"])


@router.post(
    "/api/memory/search",
    response_model=None,
    summary="Search a user's memory",
    description="Messages, facts that hold now and summaries of archived threads, nearest in meaning first.",
    responses={200: {"model": SearchAnswer}},
)
async def search(body: SearchRequest, memory: OpenMemory) -> JSONResponse:
    """The hits, and how long they took in milliseconds."""
    started = perf_counter()
    threshold = body.score_threshold
    options = RecallOptions(
        top_k=body.top_k,
        score_threshold=memory.config.score_threshold if threshold is None else threshold,
        recency_weight=body.recency_weight,
        mmr_lambda=body.mmr_lambda,
    )
    kinds = KINDS if body.kinds is None else tuple(dict.fromkeys(body.kinds))
    hits = await find(memory.recall, Scope(body.user_id, body.thread_id), body.query, options, kinds=kinds)
    took = round((perf_counter() - started) * 1000, 3)
    return JSONResponse({"hits": [hit.as_json() for hit in hits], "took_ms": took})
