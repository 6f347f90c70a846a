"""`GET /api/users/{user_id}/export`: all data of a user, streamed as it is read."""

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from recollect.api.auth.caller import PathUser
from recollect.api.routes.filters import Filtered
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.background.bulk import Bulk
from recollect.memory.transfer.export_lines import Line
from recollect.memory.transfer.exporting import export_of
from recollect.memory.values.scope import Scope

router = APIRouter(tags=["users"])

Form = Literal["jsonl", "markdown"]
LineType = Literal["message", "fact", "turn", "thread", "summary", "document", "client_record"]
NDJSON, ZIP = "application/x-ndjson", "application/zip"
EXAMPLE = (
    '{"type": "message", "user_id": "ada", "thread_id": "t1", "turn_id": "0b1f…", "role": "user", "content": "Hi.", '
    '"timestamp": "2026-01-31T09:30:00.000Z"}\n'
)


@router.get(
    "/api/users/{user_id}/export",
    response_model=None,
    summary="Export a user",
    description="Everything that is kept of the user, ids and times included, for `POST /api/import` here or "
    "elsewhere. JSON Lines, each with its `type`; or `format=markdown`: a zip with one file per fact, turn, summary "
    "and document. A stream that breaks off is not whole: send the request again.",
    responses={
        200: {
            "content": {
                NDJSON: {"schema": {"type": "string"}, "example": EXAMPLE},
                ZIP: {"schema": {"type": "string", "format": "binary"}},
            }
        }
    },
)
async def get_export(
    user: PathUser,
    memory: OpenMemory,
    form: Annotated[Form, Query(alias="format", description="`markdown`: a zip of files.")] = "jsonl",
    types: Annotated[
        list[LineType] | None, Query(alias="type", max_length=20, description="Lines of these types alone.")
    ] = None,
    thread_id: Annotated[Id | None, Query(description="What is this thread's alone.")] = None,
    asked: Filtered = None,
) -> StreamingResponse:
    """Return the stream; where the documents cannot be reached from the start, or too much is under way, an error."""
    wanted = frozenset(types) if types else None
    bulk = memory.bulk
    async with bulk.place():
        batches = await _begun(export_of(memory, Scope(user, thread_id), types=wanted, asked=asked))
    if form == "jsonl":
        return StreamingResponse(encoded(batches, bulk), media_type=NDJSON)
    from recollect.memory.transfer.archive_writing import archive_bytes

    # Proxies may log headers, so none holds a user's id.
    return StreamingResponse(
        archive_bytes(batches, bulk),
        media_type=ZIP,
        headers={"Content-Disposition": 'attachment; filename="recollect-export.zip"'},
    )


async def encoded(batches: AsyncIterator[Sequence[Line]], bulk: Bulk) -> AsyncIterator[bytes]:
    """Yield the lines as bytes. Encoding them is `bulk` work."""
    async for lines in batches:
        if lines:
            yield await bulk.run(partial(to_bytes, lines))


def to_bytes(lines: Sequence[Line]) -> bytes:
    """Return the lines as JSON, one a line."""
    return b"".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for line in lines)


async def _begun(batches: AsyncIterator[Sequence[Line]]) -> AsyncIterator[Sequence[Line]]:
    """Read the first batch, then return all: an error at once becomes a plain answer, not a broken stream."""
    first = await anext(batches, None)

    async def again() -> AsyncIterator[Sequence[Line]]:
        if first is not None:
            yield first
        async for lines in batches:
            yield lines

    return again()
