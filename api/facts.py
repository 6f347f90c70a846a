"""`GET /api/users/{user_id}/facts`."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from api.answers import FactsAnswer
from api.pages import Cursor, Limit, bad_cursor, from_cursor, to_cursor
from api.schemas import Id
from api.state import OpenMemory
from memory.scope import Scope

router = APIRouter(tags=["facts"])


@router.get(
    "/api/users/{user_id}/facts",
    response_model=None,
    summary="What is known of a user",
    description="Living facts in `items`, keyed and free-text ones, oldest first; the whole user-fact dict in `facts`.",
    responses={200: {"model": FactsAnswer}},
)
async def get_facts(user_id: Id, memory: OpenMemory, limit: Limit = 50, cursor: Cursor = None) -> JSONResponse:
    """One page of the facts, and the whole dict."""
    scope = Scope(user_id)
    after = from_cursor(cursor)
    if after is not None and not is_fact_id(after):
        raise bad_cursor()
    found = await memory.documents.facts.page(scope, limit=limit + 1, after=after)
    page = found[:limit]
    known = await memory.recall.facts(scope)
    return JSONResponse(
        {
            "items": [fact.as_json() for fact in page],
            "facts": dict(known.facts),
            "next_cursor": to_cursor(page[-1].id) if len(found) > limit else None,
        }
    )


def is_fact_id(text: str) -> bool:
    """Whether `text` may be a fact's id, which is a UUID."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
