"""A page for its route: who asks, and how to answer."""

from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import RedirectResponse, Response

from recollect.api.auth.caller import Caller, caller_of
from recollect.api.auth.visits import SAFE, SIGN_IN, Visit
from recollect.api.inspector.error_pages import POSTED
from recollect.api.inspector.frame import frame_of, is_partial, shown_user
from recollect.api.inspector.packing import packed
from recollect.api.inspector.rendering import render
from recollect.memory.values.errors import Forbidden, Unauthorized
from recollect.memory.values.frozen import frozen

TOKEN, TOKEN_HEADER = "token", "recollect-token"
"""The form's field, and the header, in which an unsafe request sends the visit's token."""


class StaleToken(Forbidden):
    """This page was opened before the service restarted or before you signed in; send it again."""

    code = "stale_token"


@frozen
class Page:
    """One request for a page. `caller` and `user` are whom the routes of the API would see too."""

    request: Request
    visit: Visit
    caller: Caller

    @property
    def user(self) -> str:
        """The user whose memory the page shows."""
        return shown_user(self.request, self.caller)

    @property
    def is_partial(self) -> bool:
        """Whether an open page asks for a part of itself."""
        return is_partial(self.request)

    def show(self, template: str, *, title: str, status: int = 200, part: str | None = None, **values: Any) -> Response:
        """Return the page; its block `part` alone where an open page asks for that. `title` names the page."""
        wanted = part if self.is_partial else None
        shown = render(template, status=status, part=wanted, title=title, **frame_of(self.request), **values)
        return packed(self.request, shown)

    def lead(self, path: str) -> Response:
        """Lead the browser to another page after an act; `path` is one of this service."""
        if self.is_partial:
            return Response(status_code=200, headers={"HX-Redirect": path})
        return RedirectResponse(path, 303)


async def _entered(request: Request) -> None:
    """Check the token of an unsafe request.

    Raises:
        StaleToken: the token is not the visit's.
    """
    visit: Visit = request.state.visit
    if request.method in SAFE:
        return
    given = request.headers.get(TOKEN_HEADER)
    if given is None:
        fields = [(name, text) for name, text in (await request.form()).multi_items() if isinstance(text, str)]
        given = next((text for name, text in fields if name == TOKEN), "")
        if request.url.path != SIGN_IN:  # a key is never written into a page
            setattr(request.state, POSTED, [(name, text) for name, text in fields if name != TOKEN])
    if not visit.is_own(given):
        raise StaleToken


ENTERED = Depends(_entered)
"""The dependency of every page's route: it checks the token before anything else happens."""


async def _page(request: Request) -> Page:
    visit: Visit = request.state.visit
    if visit.caller is None:
        raise Unauthorized("Sign in to see this page.")
    return Page(request, visit, caller_of(request.state))


OpenPage = Annotated[Page, Depends(_page)]
"""The page of somebody who has signed in, or without AUTH of anybody."""
SIGNED_IN = Depends(_page)
"""The dependency of all routes that show or change somebody's memory."""
