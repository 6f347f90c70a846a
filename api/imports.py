"""`POST /api/import`: messages of the past in bulk, one a line."""

import logging
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from api.errors import plain_error
from api.state import OpenMemory
from memory.import_source import split_lines
from memory.importing import import_lines

logger = logging.getLogger(__name__)

router = APIRouter(tags=["import"])

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
    summary="Import messages",
    description="JSON Lines: `user_id`, `thread_id`, `role` (`user` or `assistant`), `content` and `timestamp` (ISO "
    "8601, or seconds or milliseconds since 1970), and where you like `name`, `message_id` (unique per user) and "
    "`metadata`. A user's message and the assistant's that comes next in its thread make a turn. What is stored "
    "already is `known`: send the same again after a failure. At most MAX_UPLOAD_MB.",
    responses={200: {"model": ImportAnswer}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/x-ndjson": {"schema": {"type": "string"}, "example": EXAMPLE}},
        }
    },
)
async def post_import(
    request: Request,
    memory: OpenMemory,
    learn: Annotated[Literal["false", "true"], Query(description="Learn from the turns too.")] = "false",
) -> JSONResponse:
    """Store the lines as they come."""
    try:
        result = await import_lines(memory, split_lines(request.stream()), learn=learn == "true")
    except ClientDisconnect:
        # Nobody reads this answer. Whoever sends the lines again finds what was stored known.
        logger.warning("import broken off", extra={"action": "import_broken_off"})
        return plain_error(400, "invalid_request", "The body ended early.")
    return JSONResponse(result.as_json())
