"""A tenant's key, or token, acts for all users whose ids begin with its own beginning, and for nobody else."""

import json
import time
from collections.abc import Iterator

import httpx
import jwt
import pytest

from tests.service.support.commands import recollect
from tests.service.support.locked import caller, key_caller, made_key, owner_token
from tests.service.support.running import Service, service
from tests.service.support.shapes import fields, refused
from tests.service.support.visitor import Visitor

SECRET = "a-secret-of-at-least-32-characters"


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("tenants"), AUTH="api_key") as running:
        yield running


@pytest.fixture(scope="module")
def acme(locked: Service) -> Iterator[httpx.Client]:
    with key_caller(locked, "user:acme:*") as client:
        yield client


def check_tenant(acme: httpx.Client) -> None:
    """Check what a caller for `acme:` may do, and may not."""
    body = {"thread_id": "t1", "message": "I like jazz."}
    assert acme.post("/api/agent", json={**body, "user_id": "acme:ada"}).status_code == 200
    assert acme.get("/api/threads", params={"user_id": "acme:ada"}).json()["items"]
    assert fields(acme.post("/api/agent", json=body)) == ["user_id"]
    assert fields(acme.get("/api/threads")) == ["user_id"]
    for other in ("other:ada", "ada", "acme", "acm"):
        refused(acme.post("/api/agent", json={**body, "user_id": other}), 404, "not_found")
        refused(acme.get("/api/threads", params={"user_id": other}), 404, "not_found")
        refused(acme.get(f"/api/users/{other}/export"), 404, "not_found")
        refused(acme.delete(f"/api/users/{other}"), 404, "not_found")
        chat = {"messages": [{"role": "user", "content": "Hi"}], "user": other}
        assert acme.post("/v1/chat/completions", json=chat).status_code == 404
    refused(acme.get("/api/admin/keys"), 403, "forbidden")
    refused(acme.put("/api/global/facts/by-key/city", json={"value": "Oslo"}), 403, "forbidden")


def test_a_tenants_key_acts_for_its_users_alone(acme: httpx.Client) -> None:
    check_tenant(acme)


def test_a_tenants_import_writes_its_users_alone(acme: httpx.Client, locked: Service) -> None:
    lines = [{"type": "fact", "user_id": user, "value": "likes jazz"} for user in ("acme:bob", "other:bob")]
    answer = acme.post("/api/import", content="\n".join(map(json.dumps, lines)))
    assert [failed["line"] for failed in answer.json()["failed"]] == [2]
    with caller(locked, owner_token(locked)) as owner:
        assert owner.get("/api/users/other:bob/facts").json()["items"] == []


def test_a_tenants_key_signs_in_to_its_users_pages(locked: Service) -> None:
    key: str = made_key(locked, "user:acme:*")["key"]
    with Visitor(locked) as visitor:
        visitor.sign_in(key)
        assert "acme:" in visitor.page("/")
        assert visitor.get("/users/acme:ada/facts").status_code == 200
        assert visitor.get("/users/other:ada/facts").status_code == 404
        assert visitor.get("/operations").status_code == 403


def test_roles_are_read_strictly(locked: Service) -> None:
    with caller(locked, owner_token(locked)) as owner:
        for role in ("user:*", "user:a*b", "user:a b*", "user:**", "*", "user:"):
            assert fields(owner.post("/api/admin/keys", json={"role": role})) == ["role"], role
    made = recollect(locked, "keys", "create", "--role", "user:acme:*")
    assert made.returncode == 0, made.stderr
    listed = recollect(locked, "keys", "list", "--json")
    assert "user:acme:*" in [key["role"] for key in json.loads(listed.stdout)]


def test_a_token_with_a_tenants_claim_is_the_tenants(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {"JWT_SECRET": SECRET, "JWT_USER_PREFIX_CLAIM": "tenant", "JWT_ADMIN_CLAIM": "role:admin"}
    with service(tmp_path_factory.mktemp("tokens"), AUTH="jwt", **settings) as running:

        def token(**claims: object) -> str:
            return jwt.encode({"exp": int(time.time()) + 600, **claims}, SECRET, "HS256")

        with caller(running, token(sub="ada", tenant="acme:", role="admin")) as acme:
            check_tenant(acme)
        with caller(running, token(tenant="acme:")) as acme, caller(running, token(sub="acme:")) as namesake:
            receipt = acme.delete("/api/users/acme:ada").json()["erasure_id"]
            assert acme.get(f"/api/erasures/{receipt}").status_code == 200
            refused(namesake.get(f"/api/erasures/{receipt}"), 404, "not_found")
        with caller(running, token(sub="ada")) as own:
            assert own.get("/api/threads").status_code == 200
        for wrong in ("", "*", "a b", 5, ["acme:"]):
            with caller(running, token(sub="ada", tenant=wrong)) as nobody:
                refused(nobody.get("/api/threads"), 401, "unauthorized")
