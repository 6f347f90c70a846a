"""`GET /health` and `GET /health/ready`."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from recollect.api.auth.admission import OpenAdmission
from recollect.api.schemas.schema_names import answer_of
from recollect.api.state import OpenMemory
from recollect.api.version import VERSION

router = APIRouter(tags=["health"])


@router.get("/health", response_model=None, summary="What runs here", responses={200: answer_of("HealthAnswer")})
async def get_health(memory: OpenMemory, admission: OpenAdmission) -> JSONResponse:
    """Version, backends, models, what these fall back to or is not in force; asks nobody, names no secret."""
    walls = await memory.documents.walls()
    return JSONResponse(
        {
            "status": "ok",
            "version": VERSION,
            "backends": memory.operations.backends,
            "models": memory.operations.models,
            "warnings": [*memory.operations.warnings, *admission.warnings],
            "file_reader": {"in_force": walls.in_force, "missing": walls.missing},
        }
    )


@router.get(
    "/health/ready",
    response_model=None,
    summary="Whether every backend answers",
    responses={200: answer_of("ReadyAnswer"), 503: answer_of("ReadyAnswer", "Some backends are down.")},
)
async def get_ready(memory: OpenMemory) -> JSONResponse:
    """Ask each backend; 503 with the names of those that are down."""
    down = await memory.operations.down()
    return JSONResponse({"status": "down" if down else "ready", "down": down}, 503 if down else 200)
