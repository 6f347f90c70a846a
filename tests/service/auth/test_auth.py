import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.support.locked import bearer, caller, key_caller, made_key, owner_token, said
from tests.service.support.running import Service, service
from tests.service.support.shapes import fields, refused
from tests.service.support.stopped_start import stopped_start

WITHOUT_KEY = {"/health", "/health/ready"}
SECRET = "s" * 32


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service that asks for keys."""
    with service(tmp_path_factory.mktemp("locked"), AUTH="api_key") as running:
        yield running


@pytest.fixture
def callers(locked: Service, user: str) -> Iterator[dict[str, httpx.Client]]:
    """Yield a client of each role; `own` is the user's."""
    roles = {"service": "service", "admin": "admin", "own": f"user:{user}"}
    made = {name: key_caller(locked, role) for name, role in roles.items()}
    yield made
    for client in made.values():
        client.close()


def operations(running: Service) -> list[tuple[str, str]]:
    paths = running.get("/openapi.json")["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize("shown", [None, "Bearer nonsense", "Basic YTpi"])
def test_every_route_needs_a_key(locked: Service, shown: str | None) -> None:
    headers = {"Authorization": shown} if shown else {}
    asked = 0
    for method, path in [
        *operations(locked),
        ("GET", "/metrics"),
        ("POST", "/mcp"),
        ("GET", "/nowhere"),
        ("PUT", "/api"),
    ]:
        if path in WITHOUT_KEY:
            assert locked.http.request(method, path).status_code in {200, 503}
            continue
        answer = locked.http.request(method, path.format_map(_Anything()), headers=headers)
        assert (answer.status_code, answer.headers.get("www-authenticate")) == (401, "Bearer"), (method, path)
        assert answer.json()["error"]["code"] in {"unauthorized", "invalid_api_key"}, path
        asked += 1
    assert asked > 20
    refused(locked.http.get("/api/threads", headers=headers), 401, "unauthorized")


class _Anything(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "x"


def test_pages_without_data_need_none(locked: Service) -> None:
    for path in ("/docs", "/openapi.json", "/static/style.css"):
        assert locked.http.get(path).status_code == 200


def test_a_refusal_does_not_say_what_was_wrong_with_the_key(locked: Service) -> None:
    made = made_key(locked, "admin")
    key: str = made["key"]
    other = made_key(locked, "admin")["key"]
    swapped = key[: -len("x" * 43)] + other[-43:]
    wrong = [key[:-1], key + "x", key.upper(), swapped, f"rk_{'0' * 16}_{'A' * 43}", key[3:], made["id"], "null", "a b"]
    answers = {locked.http.get("/api/threads", headers=bearer(each)).text for each in wrong}
    assert len(answers) == 1
    refused(locked.http.get("/api/threads", headers=bearer(swapped)), 401, "unauthorized")
    assert locked.http.delete(f"/api/admin/keys/{made['id']}", headers=bearer(key)).status_code == 204
    assert locked.http.get("/api/threads", headers=bearer(key)).text in answers, "revoked, at once"
    for text in (key, other, owner_token(locked)):
        assert text not in locked.log


def test_a_key_is_asked_for_before_a_body_is_read(locked: Service) -> None:
    head = b"POST /api/agent HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", locked.port), timeout=20) as connection:
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 401 ")
    answer = locked.http.post("/api/agent", content=b"x" * 2_000_000)
    refused(answer, 401, "unauthorized")


def test_a_service_acts_for_any_user_and_administers_nothing(callers: dict[str, httpx.Client], user: str) -> None:
    client = callers["service"]
    for name in (user, f"{user}-2"):
        assert said(client, "Hello.", user_id=name)["user_id"] == name
    assert fields(client.post("/api/agent", json={"thread_id": "t1", "message": "Hello."})) == ["user_id"]
    assert fields(client.get("/api/threads")) == ["user_id"]
    for path in ("/api/admin/doctor", "/api/admin/keys", "/metrics"):
        refused(client.get(path), 403, "forbidden")
    refused(client.post("/api/admin/keys", json={"role": "admin"}), 403, "forbidden")
    refused(client.put("/api/global/facts/by-key/motto", json={"value": "be kind"}), 403, "forbidden")
    assert client.get("/api/global/facts").status_code == 200


def test_an_administrator_may_all(callers: dict[str, httpx.Client], user: str) -> None:
    client = callers["admin"]
    assert said(client, "Hello.", user_id=user)["user_id"] == user
    assert client.get("/metrics").status_code == 200
    assert client.get("/api/admin/keys").status_code == 200
    put = client.put("/api/global/facts/by-key/motto", json={"value": "be kind"})
    assert put.status_code == 200
    assert client.delete(f"/api/global/facts/{put.json()['id']}").status_code == 204
    assert fields(client.get("/api/threads")) == ["user_id"]


def test_a_users_own_key_is_bound_to_its_user(callers: dict[str, httpx.Client], user: str) -> None:
    own = callers["own"]
    turn = said(own, "I live in Oslo.", turn_id="first", wait_for_memory=True)
    assert turn["user_id"] == user
    assert said(own, "Me again.", user_id=user)["user_id"] == user
    for query in ({}, {"user_id": user}):
        assert own.get("/api/turns/first", params=query).json()["user_id"] == user
        assert len(own.get("/api/threads", params=query).json()["items"]) == 1
    assert own.post("/api/memory/search", json={"query": "Oslo"}).json()["hits"]
    assert own.get(f"/api/users/{user}/facts").status_code == 200
    for answer in (
        own.get("/api/turns/first", params={"user_id": "bob"}),
        own.get("/api/users/bob/facts"),
        own.post("/api/memory/search", json={"query": "Oslo", "user_id": "bob"}),
        own.post("/api/agent", json={"thread_id": "t1", "message": "Hello.", "user_id": "bob"}),
    ):
        refused(answer, 404, "not_found")
    for path in ("/api/admin/doctor", "/metrics"):
        refused(own.get(path), 403, "forbidden")


def test_lines_of_an_import_are_the_bound_users(callers: dict[str, httpx.Client], user: str) -> None:
    def line(message_id: str, **whose: str) -> str:
        rest = '"thread_id": "old", "role": "user", "content": "Hi.", "timestamp": 1700000000'
        return (
            "{"
            + "".join(f'"{name}": "{value}", ' for name, value in whose.items())
            + f'"message_id": "{message_id}", {rest}}}\n'
        )

    lines = line("1") + line("2", user_id=user) + line("3", user_id="bob")
    answer = callers["own"].post("/api/import", content=lines).json()
    assert (answer["imported"], [one["line"] for one in answer["failed"]]) == (2, [3])
    assert len(callers["own"].get("/api/threads/old/messages").json()["items"]) == 2
    assert callers["service"].get("/api/threads/old/messages", params={"user_id": "bob"}).json()["items"] == []
    unbound = callers["service"].post("/api/import", content=line("4")).json()
    assert (unbound["imported"], len(unbound["failed"])) == (0, 1)


def test_the_owner_of_the_data_is_the_administrator_on_its_machine(locked: Service) -> None:
    with caller(locked, owner_token(locked)) as owner:
        assert owner.get("/api/admin/doctor").status_code == 200
        assert owner.get("/api/threads", params={"user_id": "ada"}).status_code == 200
        assert (locked.data_dir / "lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("auth", ["none", "api_key", "jwt"])
def test_the_owners_token_opens_with_any_auth_and_is_another_after_each_start(tmp_path: Path, auth: str) -> None:
    settings = {"AUTH": auth, "JWT_SECRET": SECRET, "RATE_LIMIT_PER_MINUTE": "60", "RATE_LIMIT_BURST": "1"}
    running = Service(tmp_path, **settings)
    tokens: list[str] = []
    for _ in range(2):
        running.start()
        tokens.append(owner_token(running))
        for _ in range(3):
            answer = running.http.get("/api/admin/doctor", headers=bearer(tokens[-1]))
            assert answer.status_code == 200
        assert running.stop() == 0
        assert tokens[-1] not in (running.data_dir / "lock").read_text()
    running.http.close()
    assert tokens[0] != tokens[1]


def test_with_keys_other_addresses_may_be_listened_on(tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key", HOST="0.0.0.0") as running:
        refused(running.http.get("/api/threads"), 401, "unauthorized")
        assert made_key(running, "service")["key"]


def test_while_keys_cannot_be_looked_up_nobody_is_refused_for_good(tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key", MONGODB_URL="mongodb://127.0.0.1:1") as running:
        key = f"rk_{'0' * 16}_{'A' * 43}"
        refused(running.http.get("/api/threads", headers=bearer(key)), 503, "store_unavailable")
        refused(running.http.get("/api/threads", headers=bearer("nonsense")), 401, "unauthorized")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"AUTH": "password"}, "AUTH"),
        ({"AUTH": "jwt"}, "JWT_SECRET or JWT_JWKS_URL"),
        (
            {"AUTH": "jwt", "JWT_SECRET": SECRET, "JWT_JWKS_URL": "https://id.example/jwks"},
            "JWT_SECRET or JWT_JWKS_URL",
        ),
        ({"AUTH": "jwt", "JWT_SECRET": "too short"}, "JWT_SECRET"),
        ({"AUTH": "jwt", "JWT_SECRET": SECRET, "JWT_ALGORITHMS": "HS512"}, "JWT_SECRET must have at least 64 bytes"),
        ({"AUTH": "jwt", "JWT_SECRET": SECRET, "JWT_ALGORITHMS": "none"}, "JWT_ALGORITHMS"),
        ({"AUTH": "jwt", "JWT_SECRET": SECRET, "JWT_ALGORITHMS": "HS256,RS256"}, "JWT_ALGORITHMS"),
        ({"AUTH": "jwt", "JWT_JWKS_URL": "https://id.example/jwks", "JWT_ALGORITHMS": "HS256"}, "JWT_ALGORITHMS"),
        ({"AUTH": "jwt", "JWT_JWKS_URL": "file:///etc/passwd"}, "JWT_JWKS_URL"),
        ({"AUTH": "jwt", "JWT_SECRET": SECRET, "JWT_ADMIN_CLAIM": "admin"}, "JWT_ADMIN_CLAIM"),
        ({"AUTH": "api_key", "FORWARD_API_KEY": "true"}, "FORWARD_API_KEY"),
        ({"AUTH": "jwt", "JWT_SECRET": SECRET, "FORWARD_API_KEY": "true"}, "FORWARD_API_KEY"),
        ({"CORS_ORIGINS": "*"}, "CORS_ORIGINS"),
        ({"CORS_ORIGINS": "app.example"}, "CORS_ORIGINS"),
        ({"CORS_ORIGINS": "https://app.example/path"}, "CORS_ORIGINS"),
        ({"RATE_LIMIT_PER_MINUTE": "-1"}, "RATE_LIMIT_PER_MINUTE"),
        ({"RATE_LIMIT_BURST": "0"}, "RATE_LIMIT_BURST"),
    ],
)
def test_settings_that_contradict_each_other_stop_the_start(
    tmp_path: Path, settings: dict[str, Any], named: str
) -> None:
    told = stopped_start(tmp_path, **settings)
    assert named in told
    assert len(told.strip().splitlines()) == 1
    assert SECRET not in told
    assert not (tmp_path / "data").exists(), "nothing was opened"
