"""`/users/{user_id}/talk`: the page "Talk"."""

from fastapi import APIRouter
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.page import OpenPage

router = APIRouter(prefix="/users/{user_id}/talk")


@router.get("")
async def show_talk(page: OpenPage, user_id: PathUser) -> Response:
    """Show the page."""
    return page.show("talk.html", title="Talk")
