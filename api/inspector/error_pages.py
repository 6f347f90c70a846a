"""Shows errors to people: a page, or the notice of a page that is open, with the API's sentence."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.types import Scope

from recollect.api.auth.visits import SAFE, SIGN_IN, Visit
from recollect.api.headers import PAGE_HEADERS
from recollect.api.inspector.frame import address, frame_of, is_partial
from recollect.api.inspector.packing import packed
from recollect.api.inspector.rendering import render

POSTED = "posted_fields"
"""The name in a request's state under which a refused form's fields wait to be sent again."""
STALE = "stale_token"
REPEATABLE = frozenset({STALE, "unauthorized", "store_unavailable", "invalid_request"})
"""Errors after which the form is offered again, so that nothing typed is lost; wrong fields can be changed there."""
UNAUTHORIZED, UNAVAILABLE = 401, 503
TRY_AGAIN_SECONDS = 5
TITLES: Mapping[int, str] = {
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    409: "It has changed meanwhile",
    412: "It has changed meanwhile",
    413: "Too much at once",
    422: "Something is not right yet",
    429: "Too many requests",
    503: "Not available now",
}


def error_page(scope: Scope, whole: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Response:
    """Return the error as a page, or as a notice for a page that asked for a part; 401 leads to the sign-in."""
    request, error = Request(scope), whole["error"]
    if status == UNAUTHORIZED and scope["method"] in SAFE and not is_partial(request):
        return RedirectResponse(f"{SIGN_IN}?next={quote(address(scope), safe='')}", 303)
    visit: Visit | None = scope.get("state", {}).get("visit")
    values = {
        **frame_of(request),
        "title": TITLES.get(status, "Something went wrong"),
        "error": error,
        "address": address(scope),
        "wrong": {item["field"] for item in error["details"] or () if "field" in item},
        "posted": scope.get("state", {}).get(POSTED, ()) if error["code"] in REPEATABLE else (),
    }
    part = "notice" if is_partial(request) else None
    answer = packed(request, render("error.html", status=status, part=part, **values))
    answer.headers.update(_more(headers, is_part=part is not None))
    if status == UNAVAILABLE and part is None and scope["method"] in SAFE:
        # The page goes on by itself, with JavaScript off too; a form that was refused keeps its words until it is sent.
        answer.headers["Refresh"] = str(TRY_AGAIN_SECONDS)
    if error["code"] == STALE and visit is not None:
        answer.headers["Recollect-Token"] = visit.token
    return answer


def page_again(scope: Scope) -> Response:
    """Return a page that loads the request's address once more, from the own site."""
    return render("reload.html", address=address(scope))


def _more(given: Mapping[str, str], *, is_part: bool) -> dict[str, str]:
    """Return the headers beside the page's own; PAGE_HEADERS too, for an answer that is sent outside the door."""
    more = {name.decode(): value.decode() for name, value in PAGE_HEADERS}
    more.update((name, value) for name, value in given.items() if name.lower() == "retry-after")
    if is_part:
        more |= {"HX-Retarget": "#notice", "HX-Reswap": "innerHTML"}
    return more
