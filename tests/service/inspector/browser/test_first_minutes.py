"""The first five minutes of somebody who knows nothing but the printed address."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.service.inspector.browser.chromium import window
from tests.service.support.running import Service


def say(page: Page, words: str) -> Locator:
    """Say something and return its turn, once the agent has learned from it."""
    count = page.locator("#turns article").count()
    page.get_by_label("Your message").fill(words)
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#turns article")).to_have_count(count + 1)
    turn = page.locator("#turns article").last
    expect(turn.get_by_role("link", name="Why this answer")).to_be_visible(timeout=20_000)
    expect(turn.get_by_text("Learning…")).to_be_hidden(timeout=20_000)
    return turn


@pytest.mark.parametrize("has_javascript", [True, False])
def test_tell_see_why_correct_take_back_and_find_again(
    browser: Browser, tmp_path: Path, *, has_javascript: bool
) -> None:
    running = Service(tmp_path)
    with running, window(browser, running.url, java_script_enabled=has_javascript) as person:
        assert running.url in running.log
        page = person.open("/")
        expect(page.get_by_text("My name is Ada and I live in Paris.")).to_be_visible()

        # Tell it something, and see what it learned and from which words.
        turn = say(page, "My name is Ada. I live in Paris. My favorite color is green.")
        expect(turn.get_by_role("insertion").get_by_text("Paris")).to_be_visible()
        expect(turn.get_by_text("I live in Paris", exact=True)).to_be_visible()
        if has_javascript:  # axe is a script
            person.check_accessible()

        # Correct it.
        turn.get_by_role("link", name="Correct location").click()
        expect(page.get_by_role("link", name="the turn that taught it").first).to_be_visible()
        page.get_by_role("link", name="Edit").click()
        page.get_by_label("Text", exact=True).fill("Lyon")
        page.get_by_role("button", name="Store").click()
        expect(page.get_by_text("Lyon").first).to_be_visible()
        if has_javascript:  # axe is a script
            person.check_accessible()

        # Find it again: the search has it, and a new conversation knows what was corrected.
        page.get_by_role("link", name="Search").click()
        page.get_by_label("Look for").fill("Where do I live?")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("main li").get_by_text("Lyon").first).to_be_visible()
        page.get_by_role("link", name="Talk").click()
        page.get_by_role("link", name="New thread").click()
        turn = say(page, "Where do I live?")
        expect(turn.locator(".talk-recalled").get_by_text("Lyon").first).to_be_visible()
        turn.get_by_role("link", name="Why this answer").click()
        expect(page.get_by_role("heading", name="The memory block")).to_be_visible()

        # Take something back.
        page.get_by_role("link", name="Talk").click()
        turn = say(page, "My favorite food is pizza.")
        turn.get_by_role("link", name="Take it back").click()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_text("Taken back")).to_be_visible()
        page.get_by_role("link", name="What is known").first.click()
        expect(page.get_by_text("Lyon").first).to_be_visible()
        expect(page.get_by_text("pizza")).to_have_count(0)
