"""`GET /health` and `GET /health/ready`."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from api.answers import HealthAnswer, ReadyAnswer
from api.state import OpenMemory
from api.version import VERSION

router = APIRouter(tags=["health"])


@router.get("/health", response_model=None, summary="What runs here", responses={200: {"model": HealthAnswer}})
async def get_health(memory: OpenMemory) -> JSONResponse:
    """Version, backends and models; asks nobody and names no secret."""
    return JSONResponse(
        {
            "status": "ok",
            "version": VERSION,
            "backends": {"documents": memory.documents.name, "index": memory.index.name},
            "models": {
                "chat": memory.chat.name,
                "extraction": memory.extraction_model,
                "embedder": memory.embedder.model,
            },
        }
    )


@router.get(
    "/health/ready",
    response_model=None,
    summary="Whether every backend answers",
    responses={200: {"model": ReadyAnswer}, 503: {"model": ReadyAnswer, "description": "Some backends are down."}},
)
async def get_ready(memory: OpenMemory) -> JSONResponse:
    """Ask each backend; 503 with the names of those that are down."""
    down = await memory.down()
    return JSONResponse({"status": "down" if down else "ready", "down": down}, 503 if down else 200)
