"""Two services on one MongoDB: a session of a page holds at both, and ends at both."""

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest
from pymongo import MongoClient

from tests.service.support.locked import bearer, made_key, owner_token
from tests.service.support.running import Service, service, until
from tests.service.support.visitor import Visitor

HOME = "/users/ada/facts"


@pytest.fixture(scope="module")
def pair(mongodb_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Service]]:
    """Serve one database with two processes."""
    settings = {"MONGODB_URL": mongodb_url, "MONGODB_DATABASE": f"test_{uuid4().hex[:12]}", "AUTH": "api_key"}
    folders = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
    with MongoClient[dict[str, object]](mongodb_url) as client, ExitStack() as stack:
        yield [stack.enter_context(service(folder, **settings)) for folder in folders]
        client.drop_database(settings["MONGODB_DATABASE"])


def at_other(visitor: Visitor, own: Service, other: Service) -> Visitor:
    """Return a browser at the other process, with the session that it has at its own."""
    second = Visitor(other)
    secret = visitor.http.cookies.get(f"recollect-{own.port}")
    assert secret is not None
    second.http.cookies.set(f"recollect-{other.port}", secret)
    return second


def test_a_session_holds_at_both_and_ends_at_both(pair: list[Service]) -> None:
    one, two = pair
    key = made_key(one, "user:ada")
    with Visitor(one) as visitor:
        assert visitor.sign_in(key["key"]).status_code == 303
        with at_other(visitor, one, two) as second:
            assert second.token(HOME) == visitor.token(HOME), "a form of one process is taken by the other"
            added = second.post(f"{HOME}/new", token=visitor.token(HOME), key="city", value="Oslo")
            assert added.status_code == 303
            assert "Oslo" in visitor.page(HOME)
            assert visitor.post("/sign-out", token=visitor.token(HOME)).status_code == 303
            assert second.get(HOME).headers["location"].startswith("/sign-in")


def test_a_key_that_one_process_revokes_ends_the_session_at_the_other(pair: list[Service]) -> None:
    one, two = pair
    key = made_key(one, "user:ada")
    with Visitor(one) as visitor:
        visitor.sign_in(key["key"])
        with at_other(visitor, one, two) as second:
            assert second.get(HOME).status_code == 200
            revoked = one.http.delete(f"/api/admin/keys/{key['id']}", headers=bearer(owner_token(one)))
            assert revoked.status_code == 204
            until(lambda: second.get(HOME).status_code == 303, seconds=6)
