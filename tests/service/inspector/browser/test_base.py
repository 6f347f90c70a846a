import hashlib
import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.service.inspector.browser.chromium import AXE, Window, window
from tests.service.support.locked import made_key
from tests.service.support.running import PROJECT, service

PAGES = (
    "/users/me/talk",
    "/users/me/facts",
    "/users/me/threads",
    "/users/me/search",
    "/users/me/nothing",
    pytest.param("/docs", marks=pytest.mark.slow),
)
LINKS = """
<!doctype html><title>Elsewhere</title>
<a id="link" href="{url}/users/ada/facts">a link</a>
<form id="form" method="post" action="{url}/user"><input name="user_id" value="evil"></form>
"""


def test_vendored_scripts_are_what_they_say() -> None:
    for described in (AXE.with_suffix(".json"), PROJECT / "api/inspector/static/htmx.json"):
        said = json.loads(described.read_text(encoding="utf-8"))
        script = described.with_suffix(".js").read_bytes()
        assert hashlib.sha256(script).hexdigest() == said["sha256"]
        assert said["version"].encode() in script
        assert described.with_suffix(".LICENSE").is_file()


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_accessible(person: Window, path: str) -> None:
    person.expected.append("error: Failed to load resource: the server responded with a status of 404")
    person.open(path)
    person.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    person.check_accessible_everywhere()


def test_nothing_of_a_page_stays_in_the_browsers_storage(person: Window) -> None:
    person.open("/")
    person.page.get_by_role("link", name="Threads").click()
    person.page.go_back()
    expect(person.page.get_by_role("heading", level=1)).to_have_text("Talk")
    assert person.page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


def test_the_navigation_works_by_keyboard(person: Window) -> None:
    person.open("/")
    person.page.keyboard.press("Tab")
    expect(person.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    person.page.keyboard.press("Enter")
    expect(person.page.locator("main")).to_be_focused()


def test_another_user_is_chosen(person: Window, plain_person: Window) -> None:
    for one in (person, plain_person):
        one.open("/users/me/facts")
        one.page.get_by_label("User").fill("ada")
        one.page.get_by_role("banner").get_by_role("button", name="Show").click()
        expect(one.page).to_have_url(f"{one.url}/users/ada/facts")
        one.open("/")
        expect(one.page).to_have_url(f"{one.url}/users/ada/talk")


def test_a_link_from_another_site_opens_the_page_with_its_session(browser: Browser, tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key") as running, window(browser, running.url) as person:
        person.open("/sign-in")
        person.page.get_by_label("Key or token").fill(made_key(running, "user:ada")["key"])
        person.page.get_by_role("button", name="Sign in").click()
        expect(person.page.get_by_role("button", name="Sign out")).to_be_visible()
        person.page.route(
            "http://elsewhere.test/",
            lambda route: route.fulfill(body=LINKS.format(url=running.url), content_type="text/html"),
        )
        person.expected += ["elsewhere: http://elsewhere.test/"]
        person.page.goto("http://elsewhere.test/")
        person.page.locator("#link").click()
        expect(person.page.get_by_role("heading", level=1)).to_have_text("What is known")
        person.page.goto("http://elsewhere.test/")
        person.expected += ["error: Failed to load resource: the server responded with a status of 403"]
        with person.page.expect_response(f"{running.url}/user") as answer:
            person.page.locator("#form").evaluate("form => form.submit()")
        assert answer.value.status == 403


def test_without_javascript_a_form_is_offered_again_after_a_restart(browser: Browser, tmp_path: Path) -> None:
    with (
        service(tmp_path, DATA_DIR=":memory:") as running,
        window(browser, running.url, java_script_enabled=False) as person,
    ):
        person.open("/users/me/facts")
        person.context.clear_cookies()
        person.expected += ["error: Failed to load resource: the server responded with a status of 403"]
        person.page.get_by_label("User").fill("ada")
        person.page.get_by_role("banner").get_by_role("button", name="Show").click()
        person.page.get_by_role("button", name="Send it again").click()
        expect(person.page).to_have_url(f"{running.url}/users/ada/facts")


def test_the_page_says_that_the_service_is_down_and_goes_on(browser: Browser, tmp_path: Path) -> None:
    with service(tmp_path) as running, window(browser, running.url) as person:
        person.expected += ["error: Failed to load resource: net::"]
        person.open("/users/me/facts")
        running.kill()
        person.page.evaluate("() => { import('/static/connection.js').then((module) => module.watch()) }")
        expect(person.page.get_by_text("The service does not answer.")).to_be_visible()
        running.start()
        expect(person.page.get_by_text("The service does not answer.")).to_be_hidden(timeout=15_000)


def test_a_stale_token_is_renewed_and_the_form_sent_again(person: Window, user: str) -> None:
    page = person.open(f"/users/{user}/facts/new")
    page.get_by_label("Text").fill("Likes tea.")
    person.context.clear_cookies()
    person.expected += ["error: Failed to load resource: the server responded with a status of 403"]
    with page.expect_response(lambda answer: answer.request.method == "POST") as first:
        page.get_by_role("button", name="Store").click()
    assert first.value.status == 403
    expect(page.get_by_role("heading", level=1)).to_have_text("A fact")
    expect(page.locator("article.fact .text")).to_contain_text("Likes tea.")
