"""Pages while the service or its database is down: they say so, keep what was typed, and go on."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect
from pymongo import MongoClient

from tests.service.inspector.browser.chromium import Window, window
from tests.service.support.outage import Outage, outage_of
from tests.service.support.running import Service, service

FAILED = ("error: Failed to load resource", "error: htmx: htmx:error: Failed to fetch")
HOME = "/users/ada/facts"
Database = tuple[Service, Outage]


@pytest.fixture(scope="module")
def database(mongodb_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Serve a database that can be cut off."""
    name = f"test_{uuid4().hex[:12]}"
    with outage_of(mongodb_url) as outage:
        url = f"mongodb://127.0.0.1:{outage.port}/?serverSelectionTimeoutMS=500"
        with service(tmp_path_factory.mktemp("outages"), MONGODB_URL=url, MONGODB_DATABASE=name) as running:
            yield running, outage
    with MongoClient[dict[str, object]](mongodb_url) as client:
        client.drop_database(name)


@pytest.fixture
def cut(database: Database) -> Iterator[Outage]:
    """Yield the outage, which ends with the test."""
    yield database[1]
    database[1].end()


@pytest.fixture
def reader(browser: Browser, database: Database) -> Iterator[Window]:
    with window(browser, database[0].url) as opened:
        opened.expected.extend(FAILED)
        yield opened


def test_a_page_without_its_database_says_so_and_comes_by_itself_when_it_is_back(reader: Window, cut: Outage) -> None:
    reader.open(HOME)
    cut.begin()
    page = reader.open(HOME)
    expect(page.get_by_role("heading", level=1)).to_have_text("Not available now")
    assert page.request.get(f"{reader.url}{HOME}").headers["refresh"] == "5"
    reader.check_accessible_everywhere()
    cut.end()
    expect(page.get_by_role("heading", level=1)).to_have_text("What is known", timeout=15_000)


def test_a_form_keeps_its_words_while_the_database_is_down(reader: Window, cut: Outage) -> None:
    page = reader.open(f"{HOME}/new")
    page.get_by_label("Text").fill("Likes tea.")
    cut.begin()
    page.get_by_role("button", name="Store").click()
    expect(page.locator("#down")).to_be_visible()
    expect(page.locator("#notice")).not_to_be_empty()
    expect(page.get_by_label("Text")).to_have_value("Likes tea.")
    reader.check_accessible_everywhere()
    cut.end()
    expect(page.locator("#down")).to_be_hidden(timeout=15_000)
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A fact")


def test_without_javascript_a_form_is_offered_again(browser: Browser, database: Database, cut: Outage) -> None:
    with window(browser, database[0].url, java_script_enabled=False) as plain:
        plain.expected.extend(FAILED)
        page = plain.open(f"{HOME}/new")
        page.get_by_label("Text").fill("Likes coffee.")
        cut.begin()
        with page.expect_response(lambda answer: answer.request.method == "POST") as refused:
            page.get_by_role("button", name="Store").click()
        assert (refused.value.status, "refresh" in refused.value.headers) == (503, False), "the words would go with it"
        cut.end()
        page.get_by_role("button", name="Send it again").click()
        expect(page.locator("article.fact .text")).to_contain_text("Likes coffee.")


def test_a_form_keeps_its_words_while_the_service_restarts(browser: Browser, tmp_path: Path) -> None:
    with service(tmp_path) as running, window(browser, running.url) as person:
        person.expected.extend(FAILED)
        page = person.open(f"{HOME}/new")
        _send_amid_a_restart(running, page, field="Text", text="Likes tea.", button="Store")
        expect(page.locator("article.fact .text")).to_contain_text("Likes tea.")


def test_a_plain_form_keeps_its_words_while_the_service_restarts(browser: Browser, tmp_path: Path) -> None:
    with service(tmp_path) as running, window(browser, running.url) as person:
        person.expected.extend(FAILED)
        running.turn("Hello.", user="ada", thread="t1")
        page = person.open("/users/ada/threads/t1")
        page.get_by_text("Edit the summary").click()
        _send_amid_a_restart(running, page, field="Summary, at most", text="We met.", button="Save the summary")
        expect(page.get_by_text("Written by a person")).to_be_visible()


def _send_amid_a_restart(running: Service, page: Page, *, field: str, text: str, button: str) -> None:
    """Send a form while the service is down, see that it keeps its words when that is back, and send it again."""
    page.get_by_label(field).fill(text)
    running.kill()
    page.get_by_role("button", name=button).click()
    expect(page.get_by_text("The service does not answer.")).to_be_visible()
    running.start()
    expect(page.get_by_text("The service does not answer.")).to_be_hidden(timeout=15_000)
    expect(page.get_by_label(field)).to_have_value(text)
    page.get_by_role("button", name=button).click()
