"""`/api/users/{user_id}/facts` and `/api/global/facts`: the same verbs for a user's facts and for global ones."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import ADMIN_WRITES, WhoCalls, user_in_path
from recollect.api.routes import filters
from recollect.api.routes.filters import LABELLED, NOT_NARROWED, Listed, labelled
from recollect.api.routes.pages import Cursor, Limit, bad_cursor, fact_of_cursor, from_cursor, to_cursor
from recollect.api.routes.versions import ExpectedVersion, versioned_fact
from recollect.api.schemas.answers import FactAnswer, FactsAnswer, HistoryAnswer
from recollect.api.schemas.requests import FactRequest, Id, Time
from recollect.api.state import OpenMemory
from recollect.memory.memory import Memory
from recollect.memory.ports.facts import FactFilter
from recollect.memory.values.fact import KEY_PATTERN
from recollect.memory.values.scope import GLOBAL_USER

verbs, own, shared = APIRouter(), APIRouter(), APIRouter()
LIST = "What is known"
LISTED = "Facts that hold, keyed and free-text ones, oldest first, in `items`; the whole fact dict in `facts`."


async def _owner(request: Request) -> str:
    """Return the owner of the path's facts."""
    owner: str = request.path_params.get("user_id", GLOBAL_USER)
    return owner


Owner = Annotated[str, Depends(_owner)]
Key = Annotated[str, Path(description=f"The fact's key: {KEY_PATTERN}")]
Status = Literal["active", "proposed", "rejected", "undone", "forgotten"]

Source = Literal["turn", "manual", "tool", "import", "text"]


async def _places(
    memory: OpenMemory,
    tag: Annotated[str | None, Query(description="Those with this tag.", max_length=64)] = None,
    scope: Annotated[
        Literal["user", "thread", "global"] | None, Query(description="`thread`: working memory alone.")
    ] = None,
    as_of: Annotated[Time | None, Query(description="Those that held at this time (ISO 8601).")] = None,
    status: Annotated[Status | None, Query(description="`proposed`: those that wait for approval.")] = None,
) -> FactFilter:
    """Return of which places, times and states a list shows facts."""
    return FactFilter(memory.now(), scope=scope, tag=tag, as_of=as_of, status=status)


async def _shown(
    places: Annotated[FactFilter, Depends(_places)],
    text: Annotated[
        str | None, Query(description="Those with this text in key, value or statement, in any case.", max_length=200)
    ] = None,
    source: Annotated[Source | None, Query(description="Those of this source.")] = None,
    keyed: Annotated[bool | None, Query(description="True: those with a key; false: notes alone.")] = None,
) -> FactFilter:
    """Return which facts a list shows."""
    return replace(places, text=text or None, source=source, keyed=keyed)


Shown = Annotated[FactFilter, Depends(_shown)]


async def _shown_of_thread(
    shown: Shown, thread_id: Annotated[Id | None, Query(description="The facts of this thread too.")] = None
) -> FactFilter:
    """Return which facts a user's list shows: global facts have no thread."""
    return replace(shown, thread_id=thread_id)


@own.get("", response_model=None, summary=LIST, description=LISTED, responses={200: {"model": FactsAnswer}})
async def list_facts(
    owner: Owner,
    shown: Annotated[FactFilter, Depends(_shown_of_thread)],
    memory: OpenMemory,
    limit: Limit = 50,
    cursor: Cursor = None,
    listed: Listed = NOT_NARROWED,
) -> JSONResponse:
    """Return one page of the user's facts, and the whole dict."""
    return await _page(memory, owner, shown, listed, limit=limit, cursor=cursor)


@shared.get("", response_model=None, summary=LIST, description=LISTED, responses={200: {"model": FactsAnswer}})
async def list_global_facts(
    shown: Shown, memory: OpenMemory, limit: Limit = 50, cursor: Cursor = None, listed: Listed = NOT_NARROWED
) -> JSONResponse:
    """Return one page of everybody's facts, and the whole dict."""
    return await _page(memory, GLOBAL_USER, shown, listed, limit=limit, cursor=cursor)


async def _page(
    memory: Memory, owner: str, shown: FactFilter, listed: Listed, *, limit: int, cursor: str | None
) -> JSONResponse:
    after = fact_of_cursor(cursor)
    asked, agent_id = listed
    if asked is not None:
        fitting = await memory.filtered.facts_of(owner, shown, asked, limit=limit, after=after)
        return JSONResponse(
            {
                "items": [fact.as_json() for fact in fitting.items],
                "facts": dict(await memory.facts.known(owner, shown, agent_id=agent_id)),
                "next_cursor": to_cursor(fitting.items[-1].id) if fitting.has_more else None,
                **filters.shown_filter(fitting),
            }
        )
    page = await memory.facts.page(owner, shown, limit=limit, after=after)
    return JSONResponse(
        {
            "items": [fact.as_json() for fact in page.items],
            "facts": dict(page.facts),
            "next_cursor": to_cursor(page.items[-1].id) if page.has_more else None,
        }
    )


@verbs.put(
    "/by-key/{key}",
    response_model=None,
    summary="Write the fact under a key",
    description="Changes the fact that holds under the key, or makes one. No model changes what a person wrote.",
    responses={200: {"model": FactAnswer}},
)
async def put_fact(
    owner: Owner, key: Key, body: FactRequest, memory: OpenMemory, version: ExpectedVersion, caller: WhoCalls
) -> JSONResponse:
    """Return the fact as it is now."""
    return versioned_fact(
        await memory.facts.put(owner, key, labelled(body, caller), version=version, agent_id=caller.agent_id)
    )


@verbs.get(
    "/{fact_id}",
    response_model=None,
    summary="One fact",
    description="In whatever state it is; of a forgotten fact only a tombstone without text is left.",
    responses={200: {"model": FactAnswer}},
)
async def get_fact(owner: Owner, fact_id: Id, memory: OpenMemory) -> JSONResponse:
    """Return the fact."""
    return versioned_fact(await memory.facts.fact(owner, fact_id))


@verbs.patch(
    "/{fact_id}",
    response_model=None,
    summary="Change a fact",
    description="Changes the given fields and keeps the rest, and the earlier version in the history. Its key stays.",
    responses={200: {"model": FactAnswer}},
)
async def patch_fact(
    owner: Owner, fact_id: Id, body: FactRequest, memory: OpenMemory, version: ExpectedVersion, caller: WhoCalls
) -> JSONResponse:
    """Return the fact as it is now."""
    return versioned_fact(await memory.facts.patch(owner, fact_id, labelled(body, caller), version=version))


@verbs.delete(
    "/{fact_id}",
    status_code=204,
    summary="Forget a fact",
    description="Removes its text everywhere: all versions, the index, and what turns keep of it. Messages stay.",
)
async def forget_fact(owner: Owner, fact_id: Id, memory: OpenMemory) -> Response:
    """Nothing."""
    await memory.facts.forget(owner, fact_id)
    return Response(status_code=204)


@verbs.get(
    "/{fact_id}/history",
    response_model=None,
    summary="A fact's versions",
    description="Oldest first, each with what ended it; what the fact replaced and what replaced it included.",
    responses={200: {"model": HistoryAnswer}},
)
async def get_history(
    owner: Owner, fact_id: Id, memory: OpenMemory, caller: WhoCalls, limit: Limit = 50, cursor: Cursor = None
) -> JSONResponse:
    """Return one page."""
    begin = _place(cursor)
    found = await memory.facts.history(owner, fact_id, agent_id=caller.agent_id)
    end = begin + limit
    following = to_cursor(str(end)) if end < len(found) else None
    return JSONResponse({"items": found[begin:end], "next_cursor": following})


@verbs.post(
    "/{fact_id}/approve",
    response_model=None,
    summary="Approve a proposed fact",
    description="It holds from now on, and ends what it replaces; an approved deletion ends its target.",
    responses={200: {"model": FactAnswer}},
)
async def approve_fact(owner: Owner, fact_id: Id, memory: OpenMemory) -> JSONResponse:
    """Return the fact as it is now."""
    return JSONResponse((await memory.facts.approve(owner, fact_id)).as_json())


@verbs.post(
    "/{fact_id}/reject",
    response_model=None,
    summary="Reject a proposed fact",
    description="It will not hold; the list shows it with `status=rejected`.",
    responses={200: {"model": FactAnswer}},
)
async def reject_fact(owner: Owner, fact_id: Id, memory: OpenMemory) -> JSONResponse:
    """Return the fact as it is now."""
    return JSONResponse((await memory.facts.reject(owner, fact_id)).as_json())


def _place(cursor: str | None) -> int:
    """Return how many versions the previous pages had."""
    place = from_cursor(cursor) or "0"
    if not (place.isascii() and place.isdigit() and len(place) < len(str(2**31))):
        raise bad_cursor()
    return int(place)


router = APIRouter()
for routes in (own, verbs):
    router.include_router(
        routes, prefix="/api/users/{user_id}/facts", tags=["facts"], dependencies=[Depends(user_in_path), LABELLED]
    )
for routes in (shared, verbs):
    router.include_router(
        routes, prefix="/api/global/facts", tags=["global facts"], dependencies=[ADMIN_WRITES, LABELLED]
    )
