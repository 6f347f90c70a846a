"""`/users/{user_id}/search`: the page "Search"."""

from fastapi import APIRouter
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.page import OpenPage

router = APIRouter(prefix="/users/{user_id}/search")


@router.get("")
async def show_search(page: OpenPage, user_id: PathUser) -> Response:
    """Show the page."""
    return page.show("search.html", title="Search")
