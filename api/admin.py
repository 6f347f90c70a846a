"""`/api/admin/…`: the doctor, the rebuild of the index, and the replay of failed updates."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from api.admin_answers import DoctorAnswer, ReindexLine, ReplayedAnswer
from api.caller import ADMIN_ONLY
from api.errors import error_body
from api.schemas import Id
from api.state import OpenMemory, OpenReindexer
from memory.doctor import examine
from memory.errors import RecollectError
from memory.reindexing import RunningReindex
from memory.replay import replay_failed

router = APIRouter(prefix="/api/admin", tags=["admin"], dependencies=[ADMIN_ONLY])

LINES = "application/x-ndjson"


class ReindexRequest(BaseModel):
    """What to rebuild: everything, or one user's points where they are."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id | Literal["*"] | None = Field(None, description="One user's points alone; `*`: the global facts'.")
    dry_run: StrictBool = Field(False, description="Only say what would be done.")


class LearnRequest(BaseModel):
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
    """The doctor's report."""
    report = await examine(memory.documents, memory.index, memory.embedder, now=memory.clock())
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
    return StreamingResponse(_lines(running), media_type=LINES, headers={"Cache-Control": "no-store"})


@router.post(
    "/learn",
    response_model=None,
    summary="Try failed updates again",
    description="With all their attempts before them. Waits up to MEMORY_WAIT_SECONDS for how they end.",
    responses={200: {"model": ReplayedAnswer}},
)
async def post_learn(request: LearnRequest, memory: OpenMemory) -> JSONResponse:
    """Replay what has failed."""
    replayed = await replay_failed(memory.documents, memory.updater, seconds=memory.config.memory_wait_seconds)
    return JSONResponse(replayed.as_json())


async def _lines(running: RunningReindex) -> AsyncIterator[str]:
    async for done, total in running.progress():
        yield _line({"done": done, "total": total})
    try:
        yield _line({"report": (await running.outcome()).as_json()})
    except RecollectError as error:
        yield _line(error_body(error))


def _line(said: dict[str, Any]) -> str:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n"
