"""`GET /api/threads/{thread_id}/messages`."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from api.answers import MessagesAnswer
from api.pages import Cursor, Limit, bad_cursor, from_cursor, to_cursor
from api.schemas import Id
from api.state import OpenMemory
from memory.scope import Scope
from memory.window import format_messages

router = APIRouter(tags=["threads"])


@router.get(
    "/api/threads/{thread_id}/messages",
    response_model=None,
    summary="A thread's messages, oldest first",
    description="Unfinished turns show their user's message. `format=text` gives one line a message.",
    responses={200: {"model": MessagesAnswer, "content": {"text/plain": {}}}},
)
async def get_messages(
    thread_id: Id,
    user_id: Annotated[Id, Query()],
    memory: OpenMemory,
    limit: Limit = 50,
    cursor: Cursor = None,
    form: Annotated[Literal["json", "text"], Query(alias="format", description="`text`: one line a message.")] = "json",
) -> Response:
    """One page. A thread that nobody wrote to has no messages."""
    place = from_cursor(cursor) or "0"
    if not (place.isascii() and place.isdigit() and len(place) <= 18):
        raise bad_cursor()
    found = await memory.messages(Scope(user_id, thread_id), limit=limit + 1, after=int(place))
    page = found[:limit]
    following = to_cursor(str(page[-1].position)) if len(found) > limit else None
    if form == "text":
        return PlainTextResponse(format_messages(page), headers={"X-Next-Cursor": following} if following else None)
    return JSONResponse({"items": [message.as_json() for message in page], "next_cursor": following})
