"""`/users/{user_id}/facts`: the page "What is known"."""

from fastapi import APIRouter
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.page import OpenPage

router = APIRouter(prefix="/users/{user_id}/facts")


@router.get("")
async def show_facts(page: OpenPage, user_id: PathUser) -> Response:
    """Show the page."""
    return page.show("facts.html", title="What is known")
