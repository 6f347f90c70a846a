"""`/api/admin/…`: the doctor, the rebuild of the index, and the replay of failed updates."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from recollect.api.auth.caller import ADMIN_ONLY, UserId
from recollect.api.errors import error_body
from recollect.api.schemas.admin_answers import DoctorAnswer, PromptAnswer, ReindexLine, ReplayedAnswer
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory, OpenReindexer
from recollect.memory.index.reindexing import RunningReindex
from recollect.memory.values.errors import RecollectError

router = APIRouter(prefix="/api/admin", tags=["admin"], dependencies=[ADMIN_ONLY])

LINES = "application/x-ndjson"


class ReindexRequest(BaseModel):
    """What to rebuild: everything, or one user's points where they are."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id | Literal["*"] | None = Field(None, description="One user's points alone; `*`: the global facts'.")
    dry_run: StrictBool = Field(False, description="Only say what would be done.")


class ReplayRequest(BaseModel):
    """What to learn from again."""

    model_config = ConfigDict(extra="forbid")

    failed: Annotated[Literal[True], Field(description="Turns whose update has failed.")]


@router.get(
    "/doctor",
    response_model=None,
    summary="Compare documents and index",
    description="Reads all of both stores. `healthy` is false where points are missing, orphaned or made from "
    "something else, or where updates have failed; what is pending is not wrong.",
    responses={200: {"model": DoctorAnswer}},
)
async def get_doctor(memory: OpenMemory) -> JSONResponse:
    """Return the doctor's report."""
    report = await memory.operations.examine()
    return JSONResponse(report.as_json())


@router.post(
    "/reindex",
    response_model=None,
    summary="Rebuild the index from the documents",
    description="Into a new collection, which takes over once it holds everything; searches go on meanwhile. One JSON "
    "object a line: how far it is, then the report or the error. It goes on if you leave. 409 `reindex_running` while "
    "another one is running.",
    responses={200: {"model": ReindexLine, "content": {LINES: {}}}},
)
async def post_reindex(request: ReindexRequest, reindexer: OpenReindexer) -> StreamingResponse:
    """Begin a rebuild and say how far it is until it has ended."""
    running = reindexer.begin(user_id=request.user_id, dry_run=request.dry_run)
    return StreamingResponse(lines(running), media_type=LINES, headers={"Cache-Control": "no-store"})


@router.post(
    "/learn",
    response_model=None,
    summary="Try failed updates again",
    description="With all their attempts before them. Waits up to MEMORY_WAIT_SECONDS for how they end.",
    responses={200: {"model": ReplayedAnswer}},
)
async def post_learn(request: ReplayRequest, memory: OpenMemory) -> JSONResponse:
    """Replay what has failed."""
    replayed = await memory.operations.replay_failed()
    return JSONResponse(replayed.as_json())


@router.get(
    "/turns/{turn_id}/prompt",
    response_model=None,
    summary="The prompt of a turn's extraction",
    description="What a model would be asked now to learn from the turn: the built-in rules, or those of "
    "EXTRACTION_PROMPT_FILE with their places filled, then the data. Nobody is asked, and nothing is stored.",
    responses={200: {"model": PromptAnswer}},
)
async def get_prompt(turn_id: Id, user_id: UserId, memory: OpenMemory) -> JSONResponse:
    """Return the messages of the call."""
    return JSONResponse(await memory.turns.prompt(user_id, turn_id))


async def lines(running: RunningReindex) -> AsyncIterator[str]:
    """Yield one JSON object a line: how far the rebuild is, then its report or its error."""
    async for done, total in running.progress():
        yield _line({"done": done, "total": total})
    try:
        yield _line({"report": (await running.outcome()).as_json()})
    except RecollectError as error:
        yield _line(error_body(error))


def _line(said: dict[str, Any]) -> str:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n"
