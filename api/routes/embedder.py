"""`/api/admin/embedder`: changes the embedder while the service runs."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse, StreamingResponse

from recollect.api.auth.caller import ADMIN_ONLY
from recollect.api.routes.admin import LINES, lines
from recollect.api.schemas.admin_answers import ReindexLine
from recollect.api.schemas.embedder import EmbedderStatusAnswer, PrepareRequest
from recollect.api.state import OpenMemory
from recollect.memory.values.errors import ConfigurationError, InvalidRequest, Problem

router = APIRouter(prefix="/api/admin/embedder", tags=["admin"], dependencies=[ADMIN_ONLY])
STATUS = EmbedderStatusAnswer


@router.get(
    "",
    response_model=None,
    summary="Show which embedder serves",
    description="And which other one is prepared, or was switched from, with the points of both.",
    responses={200: {"model": STATUS}},
)
async def get_embedder(memory: OpenMemory) -> JSONResponse:
    """Return the status."""
    return JSONResponse(await memory.embedders.status())


@router.post(
    "/prepare",
    response_model=None,
    summary="Fill another embedder's collection",
    description="Searches go on with the embedder that serves; new points are owed to both until the other is dropped. "
    "One JSON object a line: how far it is, then the report or the error. It goes on if you leave, and after a kill.",
    responses={200: {"model": ReindexLine, "content": {LINES: {}}}},
)
async def post_prepare(request: PrepareRequest, memory: OpenMemory) -> StreamingResponse:
    """Begin the filling, and say how far it is until it has ended."""
    try:
        running = await memory.embedders.prepare(request.spec())
    except ConfigurationError as error:
        raise InvalidRequest(error.message, problems=[Problem("model", error.message)]) from error
    return StreamingResponse(lines(running), media_type=LINES, headers={"Cache-Control": "no-store"})


@router.post(
    "/switch",
    response_model=None,
    summary="Let the prepared embedder serve",
    description="By one write, from one search to the next. It goes before EMBEDDING_MODEL from now on.",
    responses={200: {"model": STATUS}},
)
async def post_switch(memory: OpenMemory) -> JSONResponse:
    """Switch."""
    return JSONResponse(await memory.embedders.switch())


@router.post(
    "/back",
    response_model=None,
    summary="Let the embedder before serve again",
    description="By one write: its collection has followed all along.",
    responses={200: {"model": STATUS}},
)
async def post_back(memory: OpenMemory) -> JSONResponse:
    """Switch back."""
    return JSONResponse(await memory.embedders.back())


@router.post(
    "/drop",
    response_model=None,
    summary="Delete the collection that does not serve",
    description="No byte of it stays, and new points are owed to one collection again.",
    responses={200: {"model": STATUS}},
)
async def post_drop(memory: OpenMemory) -> JSONResponse:
    """Drop."""
    return JSONResponse(await memory.embedders.drop())
