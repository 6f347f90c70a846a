"""The frame of every page: who is there, whose memory is shown, and where the other pages are."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from starlette.types import Scope

from recollect.api.auth.caller import Caller
from recollect.api.auth.visits import Visit, read_cookie
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.scope import check_id

PAGES: Mapping[str, str] = {"talk": "Talk", "facts": "What is known", "threads": "Threads", "search": "Search"}
"""A user's pages: the last part of the address, and the name in the navigation."""
FIRST_USER = "me"
CHOSEN = "recollect-user"
"""The cookie with the user that was chosen last; a convenience, which opens nothing."""


def frame_of(request: Request) -> dict[str, Any]:
    """Return what the layout shows, as variables of the template. Nobody is named where nobody has signed in."""
    visit: Visit | None = getattr(request.state, "visit", None)
    caller = visit.caller if visit is not None else None
    token = visit.token if visit is not None else ""
    if caller is None:
        return {"caller": None, "user": None, "token": token, "pages": {}, "here": None, "chooses_user": False}
    return {
        "caller": caller,
        "user": shown_user(request, caller),
        "token": token,
        "pages": PAGES,
        "here": _here(request),
        "chooses_user": caller.user_id is None,
    }


def shown_user(request: Request, caller: Caller) -> str:
    """Return whose memory the page shows: the address's user, else the caller's own, the last chosen one, or `me`."""
    named = request.path_params.get("user_id") or _in_path(request.url.path)
    chosen = _valid(named) or _valid(read_cookie(request.scope, CHOSEN))
    return caller.user_id or (chosen if chosen and caller.may_act_for(chosen) else _first(caller))


def _first(caller: Caller) -> str:
    """Return the user whom a page shows before one was chosen; of a tenant, one of its own."""
    return f"{caller.user_prefix or ''}{FIRST_USER}"


def address(scope: Scope) -> str:
    """Return the request's path and query as they came."""
    query: bytes = scope["query_string"]
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")


def is_partial(request: Request) -> bool:
    """Tell whether an open page asks for a part of itself (htmx), and not the browser for a whole page."""
    return request.headers.get("hx-request-type") == "partial"


def _here(request: Request) -> str | None:
    parts = request.url.path.split("/")
    page = parts[3] if len(parts) > 3 and parts[1] == "users" else None  # /users/{user_id}/{page}
    return "threads" if page == "turns" else page


def _in_path(path: str) -> str | None:
    parts = path.split("/")
    return parts[2] if len(parts) > 2 and parts[1] == "users" else None  # /users/{user_id}


def _valid(user_id: str | None) -> str | None:
    try:
        return check_id("user_id", user_id) if user_id else None
    except InvalidRequest:
        return None
