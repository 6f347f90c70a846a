"""`POST /api/import`: past messages in bulk, and exports, one item a line or one a file of an archive.

`GET /api/import/{import_id}` is the place to ask about an import that takes longer than a client should wait.
"""

import asyncio
import logging
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import IO, Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from recollect.api.auth.caller import WhoCalls
from recollect.api.errors import error_body, plain_error
from recollect.api.routes.hanging_up import Sender
from recollect.api.schemas.answers import ErrorContent
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenImports, OpenMemory
from recollect.memory.background.bulk import Bulk
from recollect.memory.memory import Memory
from recollect.memory.transfer.importing import ImportResult, SenderGone, import_lines
from recollect.memory.transfer.line_source import SourceLine, split_lines
from recollect.memory.values.errors import ImportInterrupted, NotFound, TooLarge

logger = logging.getLogger(__name__)

router = APIRouter(tags=["import"])

_ARCHIVE, _MAGIC_BYTES = b"PK", 4
"""The first bytes of a zip archive, with which no line of JSON begins."""
_SPOOLED_AT_ONCE = 4_000_000
EXAMPLE = (
    '{"user_id": "ada", "thread_id": "t1", "role": "user", "content": "I moved to Paris.", '
    '"timestamp": "2026-01-31T09:30:00Z", "message_id": "m1"}\n'
)


class FailedLineAnswer(BaseModel):
    """A line that was not taken: its number, from 1, and why."""

    line: int
    error: str


class ImportAnswer(BaseModel):
    """What became of the lines; the good ones are stored whatever else failed."""

    imported: int
    known: int
    failed: list[FailedLineAnswer]
    more_failed: int | None = Field(None, description="Only where more than 1,000 lines failed: how many beyond those.")
    out_of_order: int | None = Field(
        None, description="Only where there are such: messages that came behind a later one of their thread."
    )


class ImportRunning(BaseModel):
    """An import that goes on behind its answer."""

    import_id: str
    status: Literal["running"]


class ImportStatus(BaseModel):
    """An import that went on behind its answer: with `done` the counts, with `failed` and `interrupted` the error."""

    import_id: str
    status: Literal["running", "done", "failed", "interrupted"]
    imported: int | None = None
    known: int | None = None
    failed: list[FailedLineAnswer] | None = None
    more_failed: int | None = None
    out_of_order: int | None = None
    error: ErrorContent | None = None


@router.post(
    "/api/import",
    response_model=None,
    summary="Import messages, or an export",
    description="JSON Lines: `user_id`, `thread_id`, `role` (`user` or `assistant`), `content` and `timestamp` (ISO "
    "8601, or seconds or milliseconds since 1970), and where you like `name`, `message_id` (unique per user) and "
    "`metadata`. A user's message and the assistant's that comes next in its thread, by their times, or that has the "
    "same `pair_id`, make a turn. Or an export, its "
    "zip too: everything gets the ids and times it had. What is stored already is `known` and stays: send the same "
    "again after a failure. At most MAX_UPLOAD_MB, and IMPORT_SECONDS: then 503, and what came is stored. "
    "What takes longer than IMPORT_ANSWER_SECONDS (60) goes on behind a 202; `Location` says where to ask.",
    responses={200: {"model": ImportAnswer}, 202: {"model": ImportRunning}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/x-ndjson": {"schema": {"type": "string"}, "example": EXAMPLE},
                "application/zip": {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
)
async def post_import(
    request: Request,
    memory: OpenMemory,
    imports: OpenImports,
    caller: WhoCalls,
    learn: Annotated[Literal["false", "true"], Query(description="Learn from the turns too.")] = "false",
) -> JSONResponse:
    """Store the lines once they are there; those of an export as they come."""
    sender = Sender(request)

    async def work() -> ImportResult:
        async with memory.bulk.place(), aclosing(_lines(sender.body(), memory)) as lines:
            return await import_lines(
                memory,
                lines,
                learn=learn == "true",
                only_user=caller.user_id,
                may_write=caller.may_act_for,
                agent_id=caller.agent_id,
                seconds=memory.config.import_seconds,
            )

    working = asyncio.create_task(work(), name="import")
    goes_on = False
    try:
        if not await sender.wait_for(working, seconds=memory.config.import_answer_seconds):
            kept = await imports.keep(working, by=caller.name)
            goes_on = True
            return JSONResponse(kept.as_json(), 202, {"Location": f"/api/import/{kept.id}"})
        result = working.result()
    except (ClientDisconnect, SenderGone):
        # The client has left and reads no answer. If it sends the lines again, the stored ones count as known.
        logger.warning("import broken off", extra={"action": "import_broken_off"})
        return plain_error(400, "invalid_request", "The body ended early.")
    finally:
        if not goes_on:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
    return JSONResponse(result.as_json())


@router.get(
    "/api/import/{import_id}",
    response_model=None,
    summary="An import that goes on",
    description="The import of a 202: `running`, `done` with its counts, `failed` with its `error`, or `interrupted` "
    "where its process has ended: send the lines again then, the stored ones are `known`. Any process of the service "
    "can be asked, for 24 hours. For administrators, and for whoever sent it.",
    responses={200: {"model": ImportStatus}},
)
async def get_import(import_id: Id, imports: OpenImports, caller: WhoCalls) -> JSONResponse:
    """404 for somebody else's, too."""
    kept = await imports.find(import_id)
    if kept is None or not (caller.is_admin or await imports.is_by(kept, caller.name)):
        raise NotFound("There is no such import.")
    lost = error_body(ImportInterrupted()) if kept.state == "interrupted" else {}
    return JSONResponse({**kept.as_json(), **lost})


async def _lines(body: AsyncIterator[bytes], memory: Memory) -> AsyncGenerator[SourceLine]:
    """Yield the body's lines, or the lines of the archive that it is.

    Raises:
        SenderGone: the client has gone amid the body.
    """
    try:
        async for line in _lines_of(body, memory):
            yield line
    except ClientDisconnect:
        raise SenderGone from None


async def _lines_of(body: AsyncIterator[bytes], memory: Memory) -> AsyncGenerator[SourceLine]:
    beginning = b""
    async for piece in body:
        beginning += piece
        if len(beginning) >= _MAGIC_BYTES:
            break
    if not beginning.startswith(_ARCHIVE):
        async for line in split_lines(_following(beginning, body)):
            yield line
        return
    from recollect.memory.transfer.sources.archive import archive_lines

    with tempfile.TemporaryFile() as file:
        await _spool(file, _following(beginning, body), memory.bulk)
        most_unpacked = memory.config.max_unpacked_mb * 1_000_000
        async for line in archive_lines(file, memory.bulk, most_bytes=most_unpacked):
            yield line


async def _following(beginning: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield beginning
    async for piece in rest:
        yield piece


async def _spool(file: IO[bytes], pieces: AsyncIterator[bytes], bulk: Bulk) -> None:
    """Write the archive to an unnamed file: reading it needs seeking, because its list of files is at its end.

    Raises:
        TooLarge: it has too many files.
    """
    from recollect.memory.transfer.sources.archive import MOST_FILES, entries_in

    entries, waiting, size = 0, list[bytes](), 0
    async for piece in pieces:
        entries += entries_in(piece)
        if entries > MOST_FILES:
            raise TooLarge(f"The archive has more than {MOST_FILES:,} files; import the export as JSON Lines.")
        waiting.append(piece)
        size += len(piece)
        if size >= _SPOOLED_AT_ONCE:
            await bulk.run(partial(file.write, b"".join(waiting)))
            waiting, size = [], 0
    await bulk.run(partial(file.write, b"".join(waiting)))
