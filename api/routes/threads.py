"""`/api/threads`, and `/memory/clear/{session_id}`, which other memory clients call."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from recollect.api.auth.agent_bounds import check_whole_thread
from recollect.api.auth.caller import UserId, WhoCalls
from recollect.api.routes.filters import NOT_NARROWED, Filtered, Listed, shown_filter
from recollect.api.routes.pages import Cursor, Limit, to_cursor
from recollect.api.routes.thread_cursors import cursor_after, message_place, thread_place
from recollect.api.routes.versions import ExpectedVersion, versioned
from recollect.api.schemas.answers import (
    ClearedAnswer,
    MessageAnswer,
    MessagesAnswer,
    SummaryAnswer,
    ThreadsAnswer,
    WholeThreadAnswer,
)
from recollect.api.schemas.requests import WHOSE, Id, SummaryRequest
from recollect.api.schemas.thread_requests import ClearRequest, MessageRequest, TitleRequest
from recollect.api.state import OpenMemory
from recollect.memory.exchanges.single_message import SingleMessage, store_single
from recollect.memory.threads.window import format_messages
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord

router = APIRouter(tags=["threads"])


async def _thread(thread_id: Id, user_id: UserId) -> Scope:
    return Scope(user_id, thread_id)


@router.get(
    "/api/threads",
    response_model=None,
    summary="A user's threads, those last written to first",
    responses={200: {"model": ThreadsAnswer}},
)
async def get_threads(
    user_id: UserId,
    memory: OpenMemory,
    limit: Limit = 50,
    cursor: Cursor = None,
    text: Annotated[
        str | None,
        Query(description="Those with this text in id, title or first message.", max_length=200),
    ] = None,
    listed: Listed = NOT_NARROWED,
) -> JSONResponse:
    """One page; with a filter, of those threads in which a message fulfils it."""
    asked, agent_id = listed
    if asked is not None:
        fitting = await memory.filtered.threads_of(
            user_id, asked, limit=limit, before=thread_place(cursor), text=text or None, agent_id=agent_id
        )
        threads = fitting.items
        if agent_id is not None:
            seen = (memory.threads.overview(Scope(user_id, one.thread_id), agent_id=agent_id) for one in threads)
            threads = await asyncio.gather(*seen)
        items = [thread.as_json() for thread in threads]
        following = cursor_after(fitting.items[-1]) if fitting.has_more else None
        return JSONResponse({"items": items, "next_cursor": following, **shown_filter(fitting)})
    found = await memory.threads.page(user_id, limit=limit + 1, before=thread_place(cursor), text=text or None)
    page = found[:limit]
    following = cursor_after(page[-1]) if len(found) > limit else None
    return JSONResponse({"items": [thread.as_json() for thread in page], "next_cursor": following})


@router.get(
    "/api/threads/{thread_id}",
    response_model=None,
    summary="One thread, with its summary",
    responses={200: {"model": WholeThreadAnswer}},
)
async def get_thread(thread_id: Id, user_id: UserId, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """404 for a thread that nobody wrote to."""
    thread = await memory.threads.overview(Scope(user_id, thread_id), agent_id=caller.agent_id)
    return JSONResponse(thread.as_whole_json())


@router.patch(
    "/api/threads/{thread_id}",
    response_model=None,
    summary="Give a thread a title",
    description="1-200 characters; null removes it.",
    responses={200: {"model": WholeThreadAnswer}},
)
async def patch_thread(
    thread_id: Id, user_id: UserId, body: TitleRequest, memory: OpenMemory, caller: WhoCalls
) -> JSONResponse:
    """Return the thread as it is then; 404 for one that nobody wrote to."""
    scope = Scope(user_id, thread_id)
    await check_whole_thread(caller, memory, scope)
    return JSONResponse((await memory.threads.rename(scope, body.title)).as_whole_json())


@router.delete(
    "/api/threads/{thread_id}",
    status_code=204,
    response_model=None,
    summary="Delete a thread",
    description=(
        "Its messages, its summary and what it remembers for itself. The user's facts stay. With `receipt` the answer "
        "counts what went, by kind: zeros where there was nothing."
    ),
    responses={200: {"model": ClearedAnswer, "description": "With `receipt`."}},
)
async def delete_thread(
    thread_id: Id,
    user_id: UserId,
    caller: WhoCalls,
    memory: OpenMemory,
    receipt: Annotated[bool, Query(description="Answer what went.")] = False,
) -> Response:
    """404 where there is nothing of it, and no receipt is asked for."""
    scope = Scope(user_id, thread_id)
    await check_whole_thread(caller, memory, scope)
    if receipt:
        return JSONResponse({"counts": dict((await memory.erasing.erase(scope, by=caller.name)).counts)})
    await memory.threads.delete(scope, by=caller.name)
    return Response(status_code=204)


@router.post(
    "/memory/clear/{session_id}",
    status_code=204,
    response_model=None,
    summary="Clear a session",
    description="Deletes the thread of this name, as `DELETE /api/threads/{thread_id}` does. The user's facts stay.",
)
async def clear_session(
    session_id: Id,
    caller: WhoCalls,
    memory: OpenMemory,
    user_id: Annotated[Id | None, Query(description=WHOSE)] = None,
    body: ClearRequest | None = None,
) -> Response:
    """404 where there is nothing of it. The user is named in the query or in the body."""
    named = user_id if body is None or body.user_id is None else body.user_id
    if user_id not in (None, named):
        raise InvalidRequest("The request names two users.", problems=[Problem("user_id", "is another in the body")])
    scope = Scope(caller.acts_for(named), session_id)
    await check_whole_thread(caller, memory, scope)
    await memory.threads.delete(scope, by=caller.name)
    return Response(status_code=204)


@router.post(
    "/api/threads/{thread_id}/archive",
    response_model=None,
    summary="Archive a thread",
    description="Closes it with a summary that is found by meaning. Writing to it reopens it.",
    responses={200: {"model": WholeThreadAnswer}},
)
async def archive_thread(thread_id: Id, user_id: UserId, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Where the model is down the thread is archived all the same, and `summary_status` is "pending"."""
    scope = Scope(user_id, thread_id)
    await check_whole_thread(caller, memory, scope)
    return JSONResponse((await memory.threads.archive(scope)).as_whole_json())


@router.get(
    "/api/threads/{thread_id}/summary",
    response_model=None,
    summary="A thread's summary",
    responses={200: {"model": SummaryAnswer}},
)
async def get_summary(thread_id: Id, user_id: UserId, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Null while nothing has left the window."""
    return _summary(await memory.threads.summary(Scope(user_id, thread_id), agent_id=caller.agent_id))


@router.put(
    "/api/threads/{thread_id}/summary",
    response_model=None,
    summary="Write a thread's summary",
    description="The next summary starts from yours. Null or an empty text removes it.",
    responses={200: {"model": SummaryAnswer}},
)
async def put_summary(
    thread_id: Id,
    user_id: UserId,
    body: SummaryRequest,
    memory: OpenMemory,
    version: ExpectedVersion,
    caller: WhoCalls,
) -> JSONResponse:
    """Return the summary as it is stored."""
    scope = Scope(user_id, thread_id)
    await check_whole_thread(caller, memory, scope)
    return _summary(await memory.threads.set_summary(scope, body.summary, version=version))


@router.get(
    "/api/threads/{thread_id}/messages",
    response_model=None,
    summary="A thread's messages, oldest first",
    description="Unfinished turns show their user's message. `format=text` gives one line a message.",
    responses={200: {"model": MessagesAnswer, "content": {"text/plain": {}}}},
)
async def get_messages(
    scope: Annotated[Scope, Depends(_thread)],
    memory: OpenMemory,
    limit: Limit = 50,
    cursor: Cursor = None,
    form: Annotated[Literal["json", "text"], Query(alias="format", description="`text`: one line a message.")] = "json",
    asked: Filtered = None,
) -> Response:
    """Return one page. A thread that nobody wrote to has no messages."""
    after, said = message_place(cursor) or 0, dict[str, Any]()
    if asked is None:
        found = await memory.messages(scope, limit=limit + 1, after=after)
        page, has_more = found[:limit], len(found) > limit
    else:
        fitting = await memory.filtered.messages_of(scope, asked, limit=limit, after=after)
        page, has_more, said = fitting.items, fitting.has_more, shown_filter(fitting)
    following = to_cursor(str(page[-1].position)) if has_more else None
    if form == "text":
        return PlainTextResponse(
            format_messages([one for message in page for one in message.spoken]),
            headers={"X-Next-Cursor": following} if following else None,
        )
    return JSONResponse({"items": [message.as_json() for message in page], "next_cursor": following, **said})


@router.post(
    "/api/threads/{thread_id}/messages",
    response_model=None,
    summary="Store one message of an agent elsewhere",
    description=(
        "A user's begins a turn; an assistant's answers the thread's last message, which completes the turn: it is "
        "indexed and learned from. Whole turns go to `POST /api/exchanges`."
    ),
    responses={200: {"model": MessageAnswer}},
)
async def post_message(thread_id: Id, body: MessageRequest, caller: WhoCalls, memory: OpenMemory) -> JSONResponse:
    """Return the message as it is stored."""
    scope, label = Scope(caller.acts_for(body.user_id), thread_id), caller.label(body.agent_id)
    given = SingleMessage(body.role, body.content, body.turn_id, body.name, body.metadata, label)
    return JSONResponse((await store_single(memory, scope, given)).as_json())


def _summary(record: ThreadRecord) -> JSONResponse:
    return versioned({"summary": record.summary, "summary_by": record.summary_by}, record.summary_version)
