from collections.abc import Iterator

import httpx
import pytest

from tests.service.support.running import Service, service
from tests.service.support.shapes import refused
from tests.service.support.visitor import Visitor, checked, token_in

PAGES = ("talk", "facts", "threads", "search")
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def visitor(offline: Service) -> Iterator[Visitor]:
    with Visitor(offline) as visitor:
        yield visitor


def test_the_first_address_leads_to_talk_of_the_first_user(visitor: Visitor) -> None:
    home = visitor.get("/")
    assert (home.status_code, home.headers["location"]) == (303, "/users/me/talk")
    page = visitor.page("/")
    assert '<input id="user" name="user_id" value="me"' in page
    for name in PAGES:
        assert f'href="/users/me/{name}"' in page
    assert "/documents" not in page
    assert "/operations" not in page


def test_the_chosen_user_is_the_next_first_one(visitor: Visitor) -> None:
    chosen = visitor.post("/user", user_id="a|da", here="facts")
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/users/a%7Cda/facts")
    assert visitor.get("/").headers["location"] == "/users/a%7Cda/talk"
    assert 'value="a|da"' in visitor.page("/users/a%7Cda/facts")
    assert visitor.post("/user", user_id="no id", here="facts").status_code == 422
    assert visitor.post("/user", user_id="bo", here="//evil").headers["location"] == "/users/bo/talk"


def test_the_first_page_sets_an_anonymous_session(offline: Service, visitor: Visitor) -> None:
    first = visitor.get("/users/me/talk")
    (cookie,) = first.headers.get_list("set-cookie")
    name, _, rest = cookie.partition("=")
    assert name == f"recollect-{offline.port}"
    assert rest.partition("; ")[2] == "HttpOnly; SameSite=Strict; Path=/"
    assert "set-cookie" not in visitor.get("/users/me/talk").headers
    assert token_in(first.text) == visitor.token()
    with Visitor(offline) as other:
        assert other.token() != visitor.token()


@pytest.mark.parametrize(
    "path", ["/users/me/talk", "/users/me/nothing", "/users/a b/talk", "/operations/keys", "/users"]
)
def test_every_page_has_its_headers(visitor: Visitor, path: str) -> None:
    for answer in (visitor.get(path), visitor.get(path, **{"HX-Request": "true", "HX-Request-Type": "partial"})):
        assert answer.headers["content-type"].startswith("text/html")
    checked(visitor.http.put(path, headers={"Origin": visitor.origin}))
    checked(visitor.http.post(path))


@pytest.mark.parametrize(
    "origin",
    [None, "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost:{port}", "http://evil.example"],
)
def test_an_act_needs_the_own_origin(offline: Service, visitor: Visitor, origin: str | None) -> None:
    token = visitor.token()
    headers = {} if origin is None else {"Origin": origin.format(port=offline.port)}
    refused_act = checked(visitor.http.post("/user", data={"token": token, "user_id": "bo"}, headers=headers))
    assert refused_act.status_code == 403
    assert visitor.get("/").headers["location"] == "/users/me/talk"


def test_an_act_needs_the_sessions_token(offline: Service, visitor: Visitor) -> None:
    with Visitor(offline) as other:
        foreign = other.token()
    for token in ("", "x", foreign):
        answer = visitor.post("/user", token=token, user_id='b"<o', here="facts")
        assert answer.status_code == 403
        assert '<input type="hidden" name="user_id" value="b&#34;&lt;o">' in answer.text, "it can be sent again"
        assert answer.headers["recollect-token"] == token_in(answer.text) == visitor.token()
    sent = {"Origin": visitor.origin, "Recollect-Token": visitor.token()}
    assert visitor.http.post("/user", data={"user_id": "bo"}, headers=sent).status_code == 303


def test_a_link_from_another_site_reloads_once(visitor: Visitor) -> None:
    link = {**NAVIGATION, "Sec-Fetch-Site": "cross-site"}
    arrived = visitor.get("/users/ada/facts?tag=%22%3Cx", **link)
    assert arrived.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/users/ada/facts?tag=%22%3Cx">' in arrived.text
    assert "set-cookie" not in arrived.headers, "the session that the browser may have stays"
    visitor.page("/")
    assert "refresh" not in visitor.get("/users/ada/facts", **link).text
    own = {**NAVIGATION, "Sec-Fetch-Site": "same-origin"}
    visitor.http.cookies.clear()
    assert "<h1>What is known</h1>" in visitor.get("/users/ada/facts", **own).text


@pytest.mark.parametrize("dest", ["iframe", "frame", "embed", "object", "empty", "script"])
def test_nothing_but_a_whole_page_comes_from_another_site(visitor: Visitor, dest: str) -> None:
    visitor.page("/")
    link = {**NAVIGATION, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": dest}
    assert visitor.get("/users/ada/facts", **link).status_code == 403


def test_an_error_is_a_page_or_a_notice_with_the_apis_sentence(visitor: Visitor) -> None:
    page = visitor.get("/users/ada/nothing")
    assert (page.status_code, "<h1>Not found</h1>" in page.text) == (404, True)
    part = visitor.get("/users/ada/nothing", **{"HX-Request-Type": "partial"})
    assert part.headers["hx-retarget"] == "#notice"
    assert "There is no such page." in part.text
    assert "<html" not in part.text


def test_it_can_be_taken_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    with service(tmp_path_factory.mktemp("off"), INSPECTOR="off") as running:
        for path in ("/", "/users/me/talk", "/sign-in", "/sign-out", "/operations", "/user"):
            for method in ("GET", "POST", "PUT"):
                refused(running.http.request(method, path), 404, "not_found")
        assert running.http.get("/docs").status_code == 200


def test_static_files_are_kept_where_their_address_names_their_content(offline: Service, visitor: Visitor) -> None:
    page = visitor.page("/")
    (style,) = (part for part in page.split('"') if part.startswith("/static/style.css?v="))
    kept = offline.http.get(style, headers={"Accept-Encoding": "gzip"})
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert kept.headers["content-encoding"] == "gzip"
    asked = offline.http.get("/static/times.js")
    assert asked.headers["cache-control"] == "no-cache"
    again = offline.http.get("/static/times.js", headers={"If-None-Match": asked.headers["etag"]})
    assert again.status_code == 304
    for name in ("nothing.js", "htmx.json", "..%2Frouter.py", "htmx.LICENSE"):
        refused(offline.http.get(f"/static/{name}"), 404, "not_found")


def test_a_page_loads_from_the_service_alone(visitor: Visitor) -> None:
    for name in PAGES:
        page = visitor.page(f"/users/ada/{name}")
        assert "http://" not in page
        assert "https://" not in page
        assert " style=" not in page
        assert "<style" not in page


def test_an_answer_to_a_program_is_none_of_a_page(offline: Service) -> None:
    nothing: httpx.Response = offline.http.get("/nowhere")
    refused(nothing, 404, "not_found")
