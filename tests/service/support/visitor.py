"""A browser without JavaScript at the inspector: it keeps cookies, sends the Origin, and fills in the forms' token."""

import re
from typing import Self

import httpx

from tests.service.support.running import Service

TOKEN = re.compile(r'<input type="hidden" name="token" value="([0-9a-f]{64})">')
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class Visitor:
    """One browser. `origin` None: the service's own."""

    def __init__(self, running: Service, *, origin: str | None = None) -> None:
        self.http = httpx.Client(base_url=running.url, timeout=60)
        self.origin = origin or running.url

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Open an address."""
        return checked(self.http.get(path, headers=headers))

    def page(self, path: str) -> str:
        """Open an address, follow where it leads, and return the page, which must be one."""
        answer = checked(self.http.get(path, follow_redirects=True))
        assert answer.status_code == 200, answer.text
        return answer.text

    def token(self, path: str = "/users/me/talk") -> str:
        """Return the token of the page's forms."""
        return token_in(self.page(path))

    def post(
        self, path: str, *, token: str | None = None, headers: dict[str, str] | None = None, **fields: str
    ) -> httpx.Response:
        """Send a form, with the token of the page unless another is given."""
        sent = {"token": self.token() if token is None else token, **fields}
        return checked(self.http.post(path, data=sent, headers={"Origin": self.origin, **(headers or {})}))

    def sign_in(self, key: str, wanted: str = "/") -> httpx.Response:
        """Send the sign-in's form."""
        return self.post("/sign-in", token=self.token("/sign-in"), key=key, next=wanted)

    @property
    def cookie(self) -> str | None:
        """The session's cookie."""
        return self.http.cookies.get(f"recollect-{self.http.base_url.port}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()


def token_in(page: str) -> str:
    """Return the token of a page's forms."""
    found = TOKEN.search(page)
    assert found is not None, page
    return found[1]


def checked(answer: httpx.Response) -> httpx.Response:
    """Check that an answer has the headers of every page, each once, and return it."""
    assert answer.headers.get_list("content-security-policy") == [POLICY]
    assert answer.headers.get_list("referrer-policy") == ["same-origin"]
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers.get_list("cache-control") == ["no-store"]
    return answer
