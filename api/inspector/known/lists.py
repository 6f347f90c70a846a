"""`/users/{user_id}/facts`: what is known of a user, and one fact with its history."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.known.facts_query import FactsQuery
from recollect.api.inspector.known.owned import FactId, Seen, facts_owned_by
from recollect.api.inspector.known.reviews import replaced_by, review_fields
from recollect.api.inspector.page import OpenPage
from recollect.api.routes.pages import fact_of_cursor, to_cursor
from recollect.api.state import OpenMemory
from recollect.memory.memory import Memory
from recollect.memory.ports.facts import FactFilter

MOST_SHOWN = 20
"""Facts of a page, and versions of a history's page."""
router, verbs = APIRouter(), APIRouter()


@router.get("")
async def show_facts(
    page: OpenPage, user_id: PathUser, memory: OpenMemory, wanted: Annotated[FactsQuery, Query()]
) -> Response:
    """Show one page of facts, and whether some wait for approval."""
    owned = facts_owned_by(user_id, is_global=wanted.kind == "global", is_admin=page.caller.is_admin)
    after = fact_of_cursor(wanted.cursor)
    facts, has_more = await memory.facts.listed(owned.owner, wanted.shown(memory.now()), limit=MOST_SHOWN, after=after)
    replaced = await replaced_by(memory, owned, facts)
    return page.show(
        "known/facts.html",
        title="What is known",
        wanted=wanted,
        owned=owned,
        facts=facts,
        replaced=replaced,
        reviews=review_fields(facts, replaced),
        next_cursor=to_cursor(facts[-1].id) if has_more else None,
        has_waiting=wanted.status is None and await _has_waiting(memory, owned.owner),
    )


@verbs.get("/{fact_id}")
async def show_fact(
    page: OpenPage,
    owned: Seen,
    fact_id: FactId,
    memory: OpenMemory,
    cursor: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> Response:
    """Show the fact, and its versions, the newest first."""
    fact = await memory.facts.fact(owned.owner, fact_id)
    history = (await memory.facts.history(owned.owner, fact_id))[::-1]
    end = cursor + MOST_SHOWN
    replaced = await replaced_by(memory, owned, [fact])
    return page.show(
        "known/fact.html",
        title="A fact",
        owned=owned,
        fact=fact,
        replaced=replaced,
        reviews=review_fields([fact], replaced),
        versions=history[cursor:end],
        next_cursor=end if end < len(history) else None,
    )


async def _has_waiting(memory: Memory, owner: str) -> bool:
    waiting, _ = await memory.facts.listed(owner, FactFilter(memory.now(), status="proposed"), limit=1)
    return bool(waiting)
