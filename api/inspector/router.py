"""The inspector's addresses."""

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import Response

from recollect.api.auth.caller import ADMIN_ONLY
from recollect.api.auth.visits import CHOOSE_USER
from recollect.api.inspector import search, sign_in, talk, thread_acts, threads, turn_acts, turns
from recollect.api.inspector.door import COOKIES
from recollect.api.inspector.frame import CHOSEN, PAGES
from recollect.api.inspector.known import router as known
from recollect.api.inspector.page import ENTERED, SIGNED_IN, OpenPage
from recollect.api.inspector.rendering import segment
from recollect.api.schemas.requests import Id
from recollect.memory.values.errors import NotFound

# BodyLimit bounds whole bodies; a form's field may be as long, so that its own rule refuses it and its words come back.
router = APIRouter(include_in_schema=False, dependencies=[ENTERED], form_limits={"max_part_size": 2**31})
within, nowhere = APIRouter(dependencies=[SIGNED_IN]), APIRouter()

for pages in (talk, known, threads, thread_acts, turns, turn_acts, search):
    within.include_router(pages.router)


@within.get("/")
async def get_home(page: OpenPage) -> Response:
    """Lead to Talk."""
    return page.lead(f"/users/{segment(page.user)}/talk")


@within.post(CHOOSE_USER)
async def choose_user(
    page: OpenPage, user_id: Annotated[Id, Form()], here: Annotated[str, Form(max_length=20)] = "talk"
) -> Response:
    """Lead to the page of the chosen user."""
    chosen = page.caller.acts_for(user_id)
    remembered = f"{CHOSEN}={chosen}; HttpOnly; SameSite=Strict; Path=/"
    getattr(page.request.state, COOKIES).append(remembered.encode())
    return page.lead(f"/users/{segment(chosen)}/{here if here in PAGES else 'talk'}")


@nowhere.get("/users")
@nowhere.api_route("/users/{rest:path}", methods=["GET", "POST"])
async def get_nowhere(page: OpenPage) -> Response:
    """Answer 404 to somebody who has signed in."""
    raise NotFound("There is no such page.")


@nowhere.get("/operations", dependencies=[ADMIN_ONLY])
@nowhere.api_route("/operations/{rest:path}", methods=["GET", "POST"], dependencies=[ADMIN_ONLY])
async def get_no_operation(page: OpenPage) -> Response:
    """Answer 404 to administrators, and 403 to others."""
    raise NotFound("There is no such page.")


# An address that fits no page comes last.
for addresses in (sign_in.router, within, nowhere):
    router.include_router(addresses)
