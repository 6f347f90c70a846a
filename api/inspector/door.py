"""The door of the pages: gives every answer there its headers and cookies, and every error its form."""

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.api.auth.visits import Visit, Visits, is_page, read_cookie
from recollect.api.errors import ERROR_FORM, plain_error
from recollect.api.headers import PAGE_HEADERS

COOKIES = "page_cookies"
"""The name in a request's state under which its page keeps `Set-Cookie` headers."""
DOCS = "/docs"


class PageDoor:
    """Stands around the pages: their headers, cookies and errors. Without `has_pages` there is only `/docs`.

    A link on another site arrives without the session's cookie, which is for requests of the own site alone
    (SameSite=Strict). It is answered with a page that loads itself once more, now from the own site.
    """

    def __init__(self, app: ASGIApp, *, visits: Callable[[], Visits], has_pages: bool = True) -> None:
        self.app = app
        self.has_pages = has_pages
        self._visits = visits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its answer back."""
        path: str = scope.get("path", "")
        is_visited = self.has_pages and is_page(path)
        if scope["type"] != "http" or not (is_visited or path == DOCS):
            return await self.app(scope, receive, send)
        if is_visited and not self._visits().rules.is_on:
            return await plain_error(404, "not_found", "The inspector is off (INSPECTOR=off).")(scope, receive, send)
        # The templates and their engine come with the first page: a service that shows none does without them.
        from recollect.api.inspector.error_pages import error_page, page_again

        state = scope.setdefault("state", {})
        state[ERROR_FORM], state[COOKIES] = error_page, []

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*_others(message), *PAGE_HEADERS, *self._cookies(scope)]}
            await send(message)

        if is_visited and self._lacks_its_cookie(scope):
            return await page_again(scope)(scope, receive, sending)
        return await self.app(scope, receive, sending)

    def _lacks_its_cookie(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        if headers.get(b"sec-fetch-site", b"").lower() != b"cross-site" or not is_followed_link(scope):
            return False
        visits = self._visits()
        return read_cookie(scope, visits.cookie_name(scope)) is None

    def _cookies(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Return the cookies that the page sets; a new visit's comes unless the page set the session's own."""
        given: list[bytes] = scope["state"][COOKIES]
        visit: Visit | None = scope["state"].get("visit")
        visits = self._visits()
        own = f"{visits.cookie_name(scope)}=".encode()
        if visit is not None and visit.is_new and not any(cookie.startswith(own) for cookie in given):
            given = [*given, visits.set_cookie(scope, visit.secret)]
        return [(b"set-cookie", cookie) for cookie in given]


def is_followed_link(scope: Scope) -> bool:
    """Tell whether the browser loads a whole page because a link was followed or an address opened."""
    headers = dict(scope["headers"])
    return (
        scope["method"] == "GET"
        and headers.get(b"sec-fetch-mode", b"").lower() == b"navigate"
        and headers.get(b"sec-fetch-dest", b"").lower() == b"document"
    )


def _others(message: Message) -> list[tuple[bytes, bytes]]:
    """Return the answer's headers without those that every page has."""
    own = {name for name, _ in PAGE_HEADERS}
    return [header for header in message["headers"] if header[0].lower() not in own]
