"""`/api/memory`: facts without a key, as texts with tags, and learning from a given text."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import UserId, WhoCalls
from recollect.api.routes.filters import LABELLED, Filtered, labelled, shown_filter
from recollect.api.routes.pages import Cursor, Limit, fact_of_cursor, to_cursor
from recollect.api.schemas.memory_answers import (
    FreeTextAnswer,
    FreeTextsAnswer,
    KnownTextAnswer,
    LessonAnswer,
    LessonRequest,
    MemoryChange,
    MemoryRequest,
    as_memory,
)
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/api/memory", tags=["memory"], dependencies=[LABELLED])


@router.get(
    "",
    response_model=None,
    summary="A user's free-text memories, newest first",
    description="Facts without a key that hold now, those that were learned and those that a person wrote.",
    responses={200: {"model": FreeTextsAnswer}},
)
async def list_memories(
    user_id: UserId,
    memory: OpenMemory,
    tag: Annotated[str | None, Query(description="Those with this tag.", max_length=64)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    asked: Filtered = None,
) -> JSONResponse:
    """Return one page."""
    after = fact_of_cursor(cursor)
    if asked is not None:
        fitting = await memory.filtered.notes_of(user_id, asked, tag=tag, limit=limit, after=after)
        following = to_cursor(fitting.items[-1].id) if fitting.has_more else None
        items = [as_memory(fact) for fact in fitting.items]
        return JSONResponse({"items": items, "next_cursor": following, **shown_filter(fitting)})
    found = await memory.facts.notes(user_id, tag=tag, limit=limit + 1, after=after)
    page = found[:limit]
    following = to_cursor(page[-1].id) if len(found) > limit else None
    return JSONResponse({"items": [as_memory(fact) for fact in page], "next_cursor": following})


@router.post(
    "",
    status_code=201,
    response_model=None,
    summary="Write a memory",
    description=(
        "A fact without a key, recalled by meaning. No model changes what a person wrote. A statement that is known "
        "already (but for case, white space and punctuation) is confirmed instead: 200, with `known`."
    ),
    responses={200: {"model": KnownTextAnswer}, 201: {"model": FreeTextAnswer}},
)
async def post_memory(body: MemoryRequest, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Return the memory as it is stored."""
    owner, edit = caller.acts_for(body.user_id), labelled(body, caller)
    written = await memory.facts.write_note(owner, edit, agent_id=caller.agent_id)
    if written.known:
        return JSONResponse({**as_memory(written.fact), "known": True})
    return JSONResponse(as_memory(written.fact), status_code=201)


@router.post(
    "/add",
    response_model=None,
    summary="Learn from a text now",
    description=(
        "As from a user's message, without a turn: nothing is stored but what it teaches, and each fact must quote the "
        "text. It waits for what the user's turns are just teaching."
    ),
    responses={200: {"model": LessonAnswer}},
)
async def add_text(body: LessonRequest, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Return what was changed, and what was refused."""
    scope, label = Scope(caller.acts_for(body.user_id), body.thread_id), caller.label(body.agent_id)
    return JSONResponse((await memory.texts.learn(scope, body.content, agent_id=label)).as_json())


@router.get(
    "/{memory_id}",
    response_model=None,
    summary="One memory",
    description="404 for a fact with a key, and for what was forgotten.",
    responses={200: {"model": FreeTextAnswer}},
)
async def get_memory(memory_id: Id, user_id: UserId, memory: OpenMemory) -> JSONResponse:
    """Return the memory, whatever has become of it: `status` says."""
    return JSONResponse(as_memory(await memory.facts.note(user_id, memory_id)))


@router.patch(
    "/{memory_id}",
    response_model=None,
    summary="Change a memory",
    description="It keeps its id, and its version until now in the history.",
    responses={200: {"model": FreeTextAnswer}},
)
async def patch_memory(
    memory_id: Id, user_id: UserId, body: MemoryChange, memory: OpenMemory, caller: WhoCalls
) -> JSONResponse:
    """Return the memory as it is now."""
    await memory.facts.note(user_id, memory_id)
    return JSONResponse(as_memory(await memory.facts.patch(user_id, memory_id, labelled(body, caller))))


@router.delete(
    "/{memory_id}",
    status_code=204,
    response_model=None,
    summary="Forget a memory",
    description="Removes its text everywhere: all versions, the index, and what turns keep of it. Messages stay.",
)
async def forget_memory(memory_id: Id, user_id: UserId, memory: OpenMemory) -> Response:
    """Nothing; 404 where there is nothing of it."""
    await memory.facts.forget_note(user_id, memory_id)
    return Response(status_code=204)
