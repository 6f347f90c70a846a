"""Every page, whoever asks: the router's own list of routes, walked by two users, a service and an administrator."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fastapi.routing import iter_route_contexts

from recollect.api.inspector.router import router
from tests.service.support.locked import bearer, key_caller, made_key, owner_token, said
from tests.service.support.running import Service, service
from tests.service.support.visitor import Visitor, token_in

SECRET = "heliotrope"
USERS = "/users/{user_id}"
ADDRESSES = sorted(
    (method, context.path)
    for context in iter_route_contexts(router.routes)
    if context.path and context.path.startswith(f"{USERS}/")
    for method in context.methods or ()
    if method in {"GET", "POST"}
)


@dataclass(frozen=True)
class Home:
    """A service, and the ids of what the user ada has there, and of a global fact."""

    running: Service
    fact_id: str
    turn_id: str
    global_id: str

    def address(self, path: str) -> str:
        """Return ada's address of a route."""
        fact_id = self.global_id if "/facts/global" in path else self.fact_id
        return path.format(user_id="ada", thread_id="t1", fact_id=fact_id, turn_id=self.turn_id)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with service(tmp_path_factory.mktemp("roles"), AUTH="api_key") as running:
        owner = bearer(owner_token(running))
        shared = running.http.put("/api/global/facts/by-key/company", json={"value": "Acme"}, headers=owner).json()
        with key_caller(running, "user:ada") as ada:
            own = ada.put("/api/users/ada/facts/by-key/codeword", json={"value": SECRET}).json()
            turn = said(ada, f"Remember {SECRET}.", wait_for_memory=True)
        yield Home(running, own["id"], turn["turn_id"], shared["id"])


def signed_in(home: Home, role: str) -> Visitor:
    visitor = Visitor(home.running)
    assert visitor.sign_in(made_key(home.running, role)["key"]).status_code == 303
    return visitor


def is_globals_form(path: str) -> bool:
    """Tell whether a page is for writing global facts."""
    return "/facts/global" in path and path.rpartition("/")[2] in {"new", "edit", "forget"}


def test_the_walk_knows_every_kind_of_page() -> None:
    paths = {path.removeprefix(USERS).split("/")[1] for _, path in ADDRESSES}
    assert paths >= {"talk", "facts", "threads", "turns", "search", "data"}
    assert len(ADDRESSES) > 30


def test_another_user_finds_no_page_and_no_act(home: Home) -> None:
    with signed_in(home, "user:bob") as bob:
        token = token_in(bob.page("/users/bob/talk"))
        for method, path in ADDRESSES:
            address = home.address(path)
            answer = bob.get(address) if method == "GET" else bob.post(address, token=token)
            assert answer.status_code == 404, (method, path)
            assert SECRET not in answer.text


@pytest.mark.parametrize("role", ["user:ada", "service", "admin"])
def test_pages_open_for_whom_they_are(home: Home, role: str) -> None:
    with signed_in(home, role) as visitor:
        for method, path in ADDRESSES:
            if method == "GET":
                expected = 403 if is_globals_form(path) and role != "admin" else 200
                answer = visitor.http.get(home.address(path), follow_redirects=True)
                assert answer.status_code == expected, path
