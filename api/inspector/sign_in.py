"""`/sign-in` and `/sign-out`: a key or a token for a session."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from recollect.api.auth.admission import Admission
from recollect.api.auth.bearer import sender
from recollect.api.auth.visits import CHOOSE_USER, SIGN_IN, SIGN_OUT, InsecureSignIn, Visit, Visits, is_page
from recollect.api.inspector.door import COOKIES
from recollect.api.inspector.frame import CHOSEN, frame_of
from recollect.api.inspector.rendering import render
from recollect.memory.values.errors import Unauthorized

router = APIRouter()

MOST_KEY_CHARACTERS = 16_000
MOST_ADDRESS_CHARACTERS = 2_000
INVALID = "This key or token is not valid."

Wanted = Annotated[str, Query(alias="next")]
WantedField = Annotated[str, Form(alias="next")]


@router.get(SIGN_IN)
async def show_sign_in(request: Request, wanted: Wanted = "/") -> Response:
    """Show the form, or the page that was wanted where nobody needs to sign in."""
    if _visits(request).sessions is None:
        return RedirectResponse(own_path(wanted), 303)
    return _form(request, wanted)


@router.post(SIGN_IN)
async def sign_in(
    request: Request,
    key: Annotated[str, Form(max_length=MOST_KEY_CHARACTERS)] = "",
    wanted: WantedField = "/",
) -> Response:
    """Open a session, in place of the one that was, and lead to the page that was wanted."""
    visits = _visits(request)
    if visits.sessions is None:
        return RedirectResponse(own_path(wanted), 303)
    visits.check_transport(request.scope)
    admission: Admission = request.app.state.admission
    try:
        caller = await admission.proven(key.strip().encode("latin-1", "replace"), sender(request.scope))
    except Unauthorized:
        return _form(request, wanted, problem=INVALID, status=401)
    if caller.agent_id is not None:
        return _form(request, wanted, problem="An agent's key opens no pages; use another key.", status=403)
    await visits.sessions.end(_visit(request).secret)
    _set_cookies(request, await visits.sessions.open(caller))
    return RedirectResponse(own_path(wanted), 303)


@router.post(SIGN_OUT)
async def sign_out(request: Request) -> Response:
    """End the session."""
    sessions = _visits(request).sessions
    if sessions is not None:
        await sessions.end(_visit(request).secret)
    _set_cookies(request, "")
    return RedirectResponse(SIGN_IN, 303)


def own_path(wanted: str) -> str:
    """Return the path that was wanted if it is a page of this service; `/` otherwise.

    Browsers take two slashes, of either kind and with tabs between, for the beginning of another site's address.
    """
    if len(wanted) > MOST_ADDRESS_CHARACTERS or not wanted.isascii() or not wanted.isprintable() or "\\" in wanted:
        return "/"
    if not wanted.startswith("/") or wanted.startswith("//"):
        return "/"
    path = urlsplit(wanted).path
    return wanted if is_page(path) and path not in {SIGN_IN, SIGN_OUT, CHOOSE_USER} else "/"


def _form(request: Request, wanted: str, *, problem: str | None = None, status: int = 200) -> Response:
    try:
        _visits(request).check_transport(request.scope)
    except InsecureSignIn as error:
        refusal, status = error.message, 403
    else:
        refusal = None
    values = {"wanted": own_path(wanted), "problem": problem, "refusal": refusal}
    return render("sign_in.html", status=status, title="Sign in", **frame_of(request), **values)


def _set_cookies(request: Request, secret: str) -> None:
    """Give the browser the session's secret, and take away whom the one before has chosen."""
    cookies: list[bytes] = getattr(request.state, COOKIES)
    cookies.append(_visits(request).set_cookie(request.scope, secret))
    cookies.append(f"{CHOSEN}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0".encode())


def _visits(request: Request) -> Visits:
    visits: Visits = request.app.state.visits
    return visits


def _visit(request: Request) -> Visit:
    visit: Visit = request.state.visit
    return visit
