"""`/users/{user_id}/threads`: the page "Threads"."""

from fastapi import APIRouter
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.page import OpenPage

router = APIRouter(prefix="/users/{user_id}/threads")


@router.get("")
async def show_threads(page: OpenPage, user_id: PathUser) -> Response:
    """Show the page."""
    return page.show("threads.html", title="Threads")
