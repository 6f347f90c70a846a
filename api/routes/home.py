"""`GET /`: the first page for a person."""

from fastapi import APIRouter
from fastapi.responses import RedirectResponse

router = APIRouter()


@router.get("/", include_in_schema=False)
async def get_home() -> RedirectResponse:
    """Lead to the routes' descriptions, until there is a page of its own."""
    return RedirectResponse("/docs")
