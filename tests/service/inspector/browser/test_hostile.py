"""Hostile texts in every field, on every page in every state: shown as text, accessible, no wider than the window."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Dialog, Page

from recollect.api.inspector.rendering import FOLDS_AFTER
from tests.fakes.openai_server import FakeOpenAI
from tests.service.inspector.browser.chromium import Window, window
from tests.service.inspector.browser.hostile import Hostile, answering, seed
from tests.service.support.running import Service, model_settings, service

pytestmark = pytest.mark.slow

REFUSED = "error: Failed to load resource: the server responded with a status of 4"
CREATED = (
    "main img, main script, main [onclick], main [onerror], main bdi svg, main .said a, main .said b, main .said i"
)
WIDE = """() => [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(one).display !== "none")
  .filter((one) => [...one.children].length === 0)
  .map((one) => one.outerHTML.slice(0, 150)).slice(0, 3)"""
"""What reaches beyond the window, for the message of a failure."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Hostile]]:
    with FakeOpenAI() as model:
        model.on_chat = answering
        review = {"REVIEW": "sensitive", "UNPROVEN": "allow"}
        settings = model_settings(model.url, EMBEDDING_MODEL="fake-embed", **review)
        with service(tmp_path_factory.mktemp("hostile"), **settings) as running:
            yield running, seed(running)


@pytest.fixture
def reader(browser: Browser, hostile: tuple[Service, Hostile]) -> Iterator[Window]:
    """Open a window at that service; a dialog that a script opens fails the test."""
    asked = list[str]()

    def refuse(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    with window(browser, hostile[0].url) as opened:
        opened.expected += [REFUSED, "warning: The specified value"]  # a number's field was given a text
        opened.page.on("dialog", refuse)
        yield opened
    assert asked == []


@pytest.mark.timeout(180)
def test_hostile_texts_are_text_on_every_page(reader: Window, hostile: tuple[Service, Hostile]) -> None:
    for path in hostile[1].pages:
        assert list(_problems(reader.open(path))) == [], path
        reader.check_accessible_everywhere()


@pytest.mark.timeout(180)
def test_hostile_texts_are_text_on_pages_that_answer_forms(reader: Window, hostile: tuple[Service, Hostile]) -> None:
    for path, fields, status in hostile[1].refusals:
        reader.open(f"{hostile[1].own}/facts/new")
        assert (reader.post(path, **fields), path) == (status, path)
        assert list(_problems(reader.page)) == [], path
        reader.check_accessible_everywhere()


def _problems(page: Page) -> Iterator[str]:
    """Open all that unfolds, and yield what is wrong."""
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    if not page.title().endswith("· Recollect"):
        yield f"a script ran: {page.title()}"
    if page.locator(CREATED).count() > 0:
        yield "markup became elements"
    texts: list[str] = page.locator("main .said").evaluate_all(
        "all => all.filter((one) => one.closest('details.fold') === null).map((one) => one.textContent)"
    )
    if any(text.strip() == "49" for text in texts):
        yield "a template ran"
    if any(len(text) > FOLDS_AFTER for text in texts):
        yield f"{max(map(len, texts))} characters are shown unfolded"
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        yield f"too wide: {page.evaluate(WIDE)}"
