"""`/api/admin/keys`: the keys of callers with AUTH=api_key."""

from datetime import datetime

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import ADMIN_ONLY
from recollect.api.routes.pages import Cursor, Limit, bad_cursor, from_cursor, to_cursor
from recollect.api.schemas.key_answers import KeyRequest, KeysAnswer, NewKeyAnswer
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.ports.keys import Key, is_key_id
from recollect.memory.values.times import from_ms, to_ms

router = APIRouter(prefix="/api/admin/keys", tags=["admin"], dependencies=[ADMIN_ONLY])


@router.post(
    "",
    status_code=201,
    response_model=None,
    summary="Make a key",
    description="Its text is shown this once: only a hash of it is stored.",
    responses={201: {"model": NewKeyAnswer}},
)
async def post_key(body: KeyRequest, memory: OpenMemory) -> JSONResponse:
    """Return the key and its text."""
    key, text = await memory.keys.create(body.role, name=body.name, agent_id=body.agent_id)
    return JSONResponse({**key.as_json(), "key": text}, 201)


@router.get(
    "",
    response_model=None,
    summary="The keys there are",
    description="Oldest first, without what opens.",
    responses={200: {"model": KeysAnswer}},
)
async def get_keys(memory: OpenMemory, limit: Limit = 50, cursor: Cursor = None) -> JSONResponse:
    """Return one page."""
    found = await memory.keys.page(limit=limit + 1, after=_place(cursor))
    page = found[:limit]
    following = _cursor(page[-1]) if len(found) > limit else None
    return JSONResponse({"items": [key.as_json() for key in page], "next_cursor": following})


@router.delete(
    "/{key_id}",
    status_code=204,
    response_model=None,
    summary="Revoke a key",
    description="It opens nothing from now on; in other processes on the same MongoDB within 5 seconds.",
)
async def delete_key(key_id: Id, memory: OpenMemory) -> Response:
    """404 for a key that is not there."""
    await memory.keys.revoke(key_id)
    return Response(status_code=204)


def _cursor(key: Key) -> str:
    return to_cursor(f"{to_ms(key.created_at)} {key.id}")


def _place(cursor: str | None) -> tuple[datetime, str] | None:
    """Return where the last page ended: its last key's creation and id."""
    place = from_cursor(cursor)
    if place is None:
        return None
    at, _, key_id = place.partition(" ")
    try:
        if at.isascii() and at.isdigit() and is_key_id(key_id):
            return from_ms(int(at)), key_id
    except (OverflowError, ValueError):
        raise bad_cursor() from None
    raise bad_cursor()
