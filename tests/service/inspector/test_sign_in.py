import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import jwt
import pytest

from tests.service.support.locked import bearer, made_key, owner_token
from tests.service.support.running import Service, service, until
from tests.service.support.stopped_start import stopped_start
from tests.service.support.visitor import Visitor, checked, token_in


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Serve callers who need keys."""
    with service(tmp_path_factory.mktemp("locked"), AUTH="api_key") as running:
        yield running


@pytest.fixture
def visitor(locked: Service) -> Iterator[Visitor]:
    with Visitor(locked) as visitor:
        yield visitor


def signed_in(running: Service, role: str) -> Visitor:
    visitor = Visitor(running)
    answer = visitor.sign_in(made_key(running, role)["key"])
    assert (answer.status_code, answer.headers["location"]) == (303, "/"), answer.text
    return visitor


def is_signed_in(visitor: Visitor, path: str = "/") -> bool:
    answer = visitor.get(path)
    return not (answer.status_code == 303 and answer.headers["location"].startswith("/sign-in"))


def test_a_page_leads_to_the_sign_in_and_back(locked: Service, visitor: Visitor) -> None:
    asked = visitor.get("/users/ada/facts?tag=a%26b")
    assert asked.status_code == 303
    assert asked.headers["location"] == "/sign-in?next=%2Fusers%2Fada%2Ffacts%3Ftag%3Da%2526b"
    page = visitor.page(asked.headers["location"])
    assert '<input type="hidden" name="next" value="/users/ada/facts?tag=a%26b">' in page
    assert "/users/" not in page.replace("/users/ada/facts?tag=", ""), "nobody's pages are named"
    key = made_key(locked, "user:ada")["key"]
    entered = visitor.sign_in(key, "/users/ada/facts?tag=a%26b")
    assert entered.headers["location"] == "/users/ada/facts?tag=a%26b"
    assert "<h1>What is known</h1>" in visitor.page("/users/ada/facts")
    assert key not in entered.text + str(entered.headers)


@pytest.mark.parametrize(
    "wanted",
    [
        *("https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example"),
        *("evil.example", "javascript:alert(1)", "/sign-out", "/user", "/docs", "/api/threads", "/%2f/evil", ""),
        "/users/" + "a" * 3000,
    ],
)
def test_the_next_page_is_one_of_this_service(locked: Service, visitor: Visitor, wanted: str) -> None:
    key = made_key(locked, "service")["key"]
    assert visitor.sign_in(key, wanted).headers["location"] == "/"


def test_wrong_keys_are_refused_and_say_nothing(locked: Service, visitor: Visitor) -> None:
    living = made_key(locked, "user:ada")["key"]
    wrong = (living[:-1] + ("A" if living[-1] != "A" else "B"), "rk_x", "", owner_token(locked), "ä" * 20)
    answers = [visitor.sign_in(key) for key in wrong]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert "This key or token is not valid." in answers[0].text
    assert not is_signed_in(visitor)
    assert all(key not in locked.log for key in wrong if len(key) > 10)


def test_wrong_keys_count(tmp_path: Path) -> None:
    limit = {"RATE_LIMIT_PER_MINUTE": "6", "RATE_LIMIT_BURST": "4"}
    with service(tmp_path, AUTH="api_key", **limit) as running, Visitor(running) as visitor:
        token = visitor.token("/sign-in")
        keys = [bearer("wrong")] * 4
        assert [running.http.get("/api/threads", headers=key).status_code for key in keys] == [401] * 4
        answer = visitor.post("/sign-in", token=token, key="wrong")
        assert (answer.status_code, "<h1>Too many requests</h1>" in answer.text) == (429, True)
        assert int(answer.headers["retry-after"]) >= 1


def test_signing_in_renews_the_session(locked: Service, visitor: Visitor) -> None:
    visitor.page("/sign-in")
    planted = visitor.cookie
    assert planted is not None
    visitor.sign_in(made_key(locked, "user:ada")["key"])
    first = visitor.cookie
    visitor.sign_in(made_key(locked, "user:bob")["key"])
    for stale in (planted, first):
        with Visitor(locked) as thief:
            thief.http.cookies.set(f"recollect-{locked.port}", stale or "")
            assert not is_signed_in(thief, "/users/ada/facts")
    assert "<h1>What is known</h1>" in visitor.page("/users/bob/facts")


def test_only_its_hash_is_stored(locked: Service) -> None:
    with signed_in(locked, "user:ada") as visitor:
        secret = (visitor.cookie or "").encode()
        assert len(secret) == 43
        files = [path.read_bytes() for path in locked.data_dir.rglob("*") if path.is_file()]
        assert not any(secret in content for content in files)
        assert secret.decode() not in locked.log


def test_signing_out_ends_it(locked: Service) -> None:
    with signed_in(locked, "service") as visitor:
        visitor.post("/user", user_id="ada")
        secret = visitor.cookie
        left = visitor.post("/sign-out")
        assert (left.status_code, left.headers["location"]) == (303, "/sign-in")
        assert {cookie.partition("=")[0] for cookie in left.headers.get_list("set-cookie")} == {
            f"recollect-{locked.port}",
            "recollect-user",
        }
        assert all("Max-Age=0" in cookie for cookie in left.headers.get_list("set-cookie"))
        visitor.http.cookies.set(f"recollect-{locked.port}", secret or "")
        assert not is_signed_in(visitor)


def test_a_user_sees_its_own_pages_alone(locked: Service) -> None:
    with signed_in(locked, "user:ada") as visitor:
        assert visitor.get("/").headers["location"] == "/users/ada/talk"
        page = visitor.page("/users/ada/facts")
        assert 'name="user_id"' not in page
        for name in ("talk", "facts", "threads", "threads/t1", "turns/x", "search", "documents", "data"):
            assert visitor.get(f"/users/bob/{name}").status_code == 404, name
        assert visitor.get("/operations").status_code == 403
        assert visitor.get("/operations/keys").status_code == 403
        assert visitor.post("/user", user_id="bob", token=token_in(page)).status_code == 404


def test_a_service_sees_all_users_but_no_operations_and_an_administrator_all(locked: Service) -> None:
    for role, status in (("service", 403), ("admin", 404)):
        with signed_in(locked, role) as visitor:
            assert visitor.get("/").headers["location"] == "/users/me/talk"
            assert '<input id="user" name="user_id" value="bob"' in visitor.page("/users/bob/facts")
            for path in ("/operations", "/operations/keys"):
                assert visitor.get(path).status_code == status


def test_the_cookie_opens_pages_alone(locked: Service) -> None:
    with signed_in(locked, "admin") as visitor:
        assert is_signed_in(visitor)
        for path in ("/api/threads?user_id=ada", "/v1/models", "/mcp", "/metrics", "/memory-stats?user_id=ada"):
            assert visitor.http.get(path).status_code == 401, path
        sent = {"Origin": visitor.origin, "Recollect-Token": visitor.token()}
        for path in ("/memory/clear/t1?user_id=ada", "/api/agent", "/mcp"):
            assert visitor.http.post(path, json={}, headers=sent).status_code == 401, path


def test_a_key_opens_no_page(locked: Service) -> None:
    headers = bearer(made_key(locked, "admin")["key"])
    answer = checked(locked.http.get("/users/ada/facts", headers=headers))
    assert answer.headers["location"].startswith("/sign-in?next=")
    locked.http.cookies.clear()


def test_a_revoked_key_ends_its_session(locked: Service) -> None:
    made = made_key(locked, "user:ada")
    with Visitor(locked) as visitor:
        visitor.sign_in(made["key"])
        assert is_signed_in(visitor)
        owner = bearer(owner_token(locked))
        assert locked.http.delete(f"/api/admin/keys/{made['id']}", headers=owner).status_code == 204
        assert not is_signed_in(visitor)


def test_an_erased_user_has_no_session(locked: Service, user: str) -> None:
    with signed_in(locked, f"user:{user}") as visitor, signed_in(locked, f"user:{user}") as second:
        assert is_signed_in(visitor)
        erased = locked.http.delete(f"/api/users/{user}", headers=bearer(owner_token(locked)))
        assert (erased.json()["counts"]["sessions"], erased.json()["remaining"]["sessions"]) == (2, 0)
        assert not is_signed_in(visitor)
        assert not is_signed_in(second)


def test_what_was_typed_is_offered_again_after_a_session(locked: Service, user: str) -> None:
    with signed_in(locked, "service") as visitor:
        token, secret = visitor.token(), visitor.cookie
        visitor.post("/sign-out", token=token)
        visitor.http.cookies.set(f"recollect-{locked.port}", secret or "")
        answer = visitor.post("/user", token=token, user_id=user)
        assert answer.status_code == 401
        assert f'<input type="hidden" name="user_id" value="{user}">' in answer.text
        part = visitor.post("/user", token=token, headers={"HX-Request-Type": "partial"}, user_id=user)
        assert (part.status_code, part.headers["hx-retarget"]) == (401, "#notice")


def test_it_survives_a_restart_and_another_way_of_auth_ends_it(tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key") as running, signed_in(running, "user:ada") as visitor:
        token = visitor.token("/users/ada/talk")
        running.kill()
        running.start()
        assert visitor.token("/users/ada/talk") == token
        running.stop()
        running.settings.update(AUTH="jwt", JWT_SECRET="s" * 32)
        running.start()
        assert not is_signed_in(visitor)


def test_over_plain_http_nobody_signs_in_from_elsewhere(tmp_path: Path) -> None:
    settings = {"AUTH": "api_key", "ALLOWED_HOSTS": "memory.test"}
    with (
        service(tmp_path, **settings) as running,
        Visitor(running, origin=f"http://memory.test:{running.port}") as visitor,
    ):
        visitor.http.headers["host"] = f"memory.test:{running.port}"
        key = made_key(running, "user:ada")["key"]
        page = visitor.get("/sign-in")
        assert (page.status_code, 'name="key"' in page.text) == (403, False)
        assert "Signing in over plain HTTP shows the key to the network" in page.text
        with Visitor(running) as near:
            token, cookie = near.token("/sign-in"), near.cookie
        sent = {"Cookie": f"recollect-{running.port}={cookie}"}
        assert visitor.post("/sign-in", token=token, headers=sent, key=key).status_code == 403
        running.stop()
        running.settings["ALLOW_INSECURE"] = "true"
        running.start()
        assert visitor.sign_in(key).status_code == 303


def test_the_public_address_decides_cookie_and_origin(tmp_path: Path) -> None:
    settings = {"AUTH": "api_key", "PUBLIC_URL": "https://memory.test"}
    with service(tmp_path, **settings) as running, httpx.Client(base_url=running.url) as browser:
        first = checked(browser.get("/sign-in", headers={"Host": "memory.test"}))
        (cookie,) = first.headers.get_list("set-cookie")
        name, _, rest = cookie.partition("=")
        secret, _, flags = rest.partition("; ")
        assert (name, flags) == ("__Host-recollect", "HttpOnly; SameSite=Strict; Path=/; Secure")
        form = {"token": token_in(first.text), "key": made_key(running, "user:ada")["key"]}
        sent = {"Cookie": f"{name}={secret}"}
        origins = ["http://memory.test", "https://memory.test:8443", running.url, "https://other.test", "null"]
        for origin in origins:
            assert browser.post("/sign-in", data=form, headers={**sent, "Origin": origin}).status_code == 403
        for host in ("memory.test", f"127.0.0.1:{running.port}"):
            asked = {**sent, "Origin": "https://memory.test", "Host": host}
            assert browser.post("/sign-in", data=form, headers=asked).status_code == 303


def test_a_wrong_public_address_stops_the_start(tmp_path: Path) -> None:
    for url in ("memory.test", "https://memory.test/path", "ftp://memory.test", "https://a@memory.test"):
        assert "PUBLIC_URL should read like" in stopped_start(tmp_path, PUBLIC_URL=url)


def test_a_token_of_an_issuer_opens_a_session_until_its_end(tmp_path: Path) -> None:
    secret = "s" * 32
    with service(tmp_path, AUTH="jwt", JWT_SECRET=secret) as running, Visitor(running) as visitor:
        end = int(time.time()) + 6
        token = jwt.encode({"sub": "auth0|ada", "exp": end}, secret, "HS256")
        assert visitor.sign_in(token).status_code == 303
        assert visitor.get("/").headers["location"] == "/users/auth0%407cada/talk"
        until(lambda: not is_signed_in(visitor))
        assert end <= time.time() <= end + 5
        old = jwt.encode({"sub": "ada", "exp": int(time.time()) - 60}, secret, "HS256")
        assert visitor.sign_in(old).status_code == 401


def test_without_auth_nobody_signs_in(offline: Service) -> None:
    with Visitor(offline) as visitor:
        for path, next_one in (("/sign-in", "/"), ("/sign-in?next=/users/ada/facts", "/users/ada/facts")):
            assert visitor.get(path).headers["location"] == next_one
        assert "Sign out" not in visitor.page("/")
