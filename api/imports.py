"""`POST /api/import`: messages of the past in bulk, and exports, one thing a line or one a file of an archive."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import IO, Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from api.caller import WhoCalls
from api.errors import plain_error
from api.state import OpenMemory
from memory.errors import TooLarge
from memory.import_source import SourceLine, split_lines
from memory.importing import import_lines

logger = logging.getLogger(__name__)

router = APIRouter(tags=["import"])

_ARCHIVE, _MAGIC_BYTES = b"PK", 4
"""What a zip archive begins with, and no line of JSON does."""
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


@router.post(
    "/api/import",
    response_model=None,
    summary="Import messages, or an export",
    description="JSON Lines: `user_id`, `thread_id`, `role` (`user` or `assistant`), `content` and `timestamp` (ISO "
    "8601, or seconds or milliseconds since 1970), and where you like `name`, `message_id` (unique per user) and "
    "`metadata`. A user's message and the assistant's that comes next in its thread make a turn. Or an export, its "
    "zip too: everything gets the ids and times it had. What is stored already is `known` and stays: send the same "
    "again after a failure. At most MAX_UPLOAD_MB.",
    responses={200: {"model": ImportAnswer}},
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
    caller: WhoCalls,
    learn: Annotated[Literal["false", "true"], Query(description="Learn from the turns too.")] = "false",
) -> JSONResponse:
    """Store the lines as they come; an archive, once it is there."""
    lines = _lines(request.stream(), most_unpacked=memory.config.max_unpacked_mb * 1_000_000)
    try:
        async with aclosing(lines):
            result = await import_lines(memory, lines, learn=learn == "true", only_user=caller.user_id)
    except ClientDisconnect:
        # Nobody reads this answer. Whoever sends the lines again finds what was stored known.
        logger.warning("import broken off", extra={"action": "import_broken_off"})
        return plain_error(400, "invalid_request", "The body ended early.")
    return JSONResponse(result.as_json())


async def _lines(body: AsyncIterator[bytes], *, most_unpacked: int) -> AsyncGenerator[SourceLine]:
    """The body's lines, or those of the archive that it is."""
    beginning = b""
    async for piece in body:
        beginning += piece
        if len(beginning) >= _MAGIC_BYTES:
            break
    if not beginning.startswith(_ARCHIVE):
        async for line in split_lines(_following(beginning, body)):
            yield line
        return
    from memory.importers.archive import archive_lines

    with tempfile.TemporaryFile() as file:
        await _spool(file, _following(beginning, body))
        async for line in archive_lines(file, most_bytes=most_unpacked):
            yield line


async def _following(beginning: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield beginning
    async for piece in rest:
        yield piece


async def _spool(file: IO[bytes], pieces: AsyncIterator[bytes]) -> None:
    """Write the archive to a file without a name: its list of files stands at its end.

    Raises:
        TooLarge: it has too many files.
    """
    from memory.importers.archive import MOST_FILES, entries_in

    entries = 0
    async for piece in pieces:
        entries += entries_in(piece)
        if entries > MOST_FILES:
            raise TooLarge(f"The archive has more than {MOST_FILES:,} files; import the export as JSON Lines.")
        await asyncio.to_thread(file.write, piece)
