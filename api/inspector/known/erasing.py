"""`/users/{user_id}/data/erase`: erases everything of a user's, and shows the receipt."""

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.door import COOKIES
from recollect.api.inspector.frame import CHOSEN
from recollect.api.inspector.page import OpenPage, Page
from recollect.api.inspector.rendering import segment
from recollect.api.state import OpenMemory
from recollect.memory.ports.erasures import Erasure
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/users/{user_id}/data/erase")
TITLE = "Erase everything"


@router.get("")
async def ask_erase(page: OpenPage, user_id: PathUser) -> Response:
    """Tell what would go, and ask for the user's id."""
    return _ask(page, user_id, typed="", is_wrong=False)


@router.post("")
async def erase(
    page: OpenPage, user_id: PathUser, memory: OpenMemory, typed: Annotated[str, Form(max_length=200)] = ""
) -> Response:
    """Erase the user whose id was typed. The receipt comes at once: a session of that user ends with the data."""
    if typed.strip() != user_id:
        return _ask(page, user_id, typed=typed, is_wrong=True)
    erasure = await memory.erasing.erase(Scope(user_id), by=page.caller.name)
    getattr(page.request.state, COOKIES).append(f"{CHOSEN}=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/".encode())
    return _receipt(page, erasure)


def _ask(page: Page, user_id: str, *, typed: str, is_wrong: bool) -> Response:
    return page.show(
        "known/erase.html",
        title=TITLE,
        status=422 if is_wrong else 200,
        own=f"/users/{segment(user_id)}",
        typed=typed,
        is_wrong=is_wrong,
        receipt=None,
    )


def _receipt(page: Page, erasure: Erasure) -> Response:
    return page.show("known/erase.html", title="Erased", receipt=erasure.as_json(), own="", typed="", is_wrong=False)
