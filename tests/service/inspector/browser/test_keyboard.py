"""Threads, Search and the acts on a turn, used by keyboard alone."""

import pytest
from playwright.sync_api import Page, expect

from tests.service.inspector.browser.chromium import Window
from tests.service.support.running import Service

pytestmark = pytest.mark.slow

MOST_TABS = 80
FOCUSED = "document.activeElement.textContent.trim() || document.activeElement.id"


def tab_to(page: Page, name: str) -> None:
    """Press Tab until what has the focus is named so: by its text, or a field by its id."""
    seen = list[str]()
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
        if seen[-1] == name:
            return
    raise AssertionError(f"never reached {name!r}: {seen}")


def enter(page: Page, name: str) -> None:
    """Go there and press Enter."""
    tab_to(page, name)
    page.keyboard.press("Enter")


def test_a_thread_is_found_named_summed_up_archived_and_deleted(person: Window, offline: Service, user: str) -> None:
    offline.turn("About the harbour.", user=user, thread="t1", wait_for_memory=True)
    page = person.open(f"/users/{user}/threads")
    tab_to(page, "text")
    page.keyboard.type("HARBOUR")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{person.url}/users/{user}/threads?text=HARBOUR")
    enter(page, "About the harbour.")
    expect(page.get_by_role("heading", level=1)).to_have_text("About the harbour.")
    tab_to(page, "title")
    page.keyboard.type("Ships")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ships")
    enter(page, "Edit the summary")
    tab_to(page, "summary")
    page.keyboard.type("We spoke of ships.")
    enter(page, "Save the summary")
    expect(page.get_by_text("Written by a person")).to_be_visible()
    enter(page, "Archive the thread")
    expect(page.get_by_text("It is archived")).to_be_visible()
    enter(page, "Delete the thread")
    expect(page.get_by_role("dialog")).to_be_visible()
    enter(page, "Delete")
    expect(page.get_by_text("There is no thread yet.")).to_be_visible()


def test_a_search_is_made_its_settings_changed_and_compared(person: Window, offline: Service, user: str) -> None:
    for number in range(3):
        offline.turn(f"Pizza number {number} had figs on it.", user=user, thread=f"t{number}", wait_for_memory=True)
    page = person.open(f"/users/{user}/search")
    tab_to(page, "query")
    page.keyboard.type("pizza with figs")
    enter(page, "Settings")
    tab_to(page, "top_k")
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 hit in")).to_be_visible()
    enter(page, "Compare two settings")
    expect(page.get_by_role("heading", name="Hits", exact=True)).to_have_count(2)
    tab_to(page, "second_top_k")
    page.keyboard.type("2")  # in place of the 1: a field that Tab enters is selected
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 hits in")).to_be_visible()
    enter(page, "message of the user")
    expect(page.get_by_role("heading", level=1)).to_have_text("A turn, and why it answered so")


def test_a_turn_is_learned_from_again_regenerated_and_undone(person: Window, offline: Service, user: str) -> None:
    turn_id = offline.turn("I live in Oslo.", user=user, wait_for_memory=True)["turn_id"]
    own = f"{person.url}/users/{user}/turns/{turn_id}"
    page = person.open(own.removeprefix(person.url))
    enter(page, "Learn again")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("link", name="Learn again")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    enter(page, "Show the difference")
    expect(page.get_by_role("heading", level=1)).to_have_text("Learning again would change nothing")
    enter(page, "Cancel")
    expect(page).to_have_url(own)
    enter(page, "Regenerate the reply")
    expect(page.get_by_role("dialog")).to_be_visible()
    with page.expect_navigation():
        enter(page, "Regenerate")
    offline.settled(turn_id, user=user)
    enter(page, "Undo what it taught")
    expect(page.get_by_role("dialog")).to_be_visible()
    enter(page, "Undo")
    expect(page.get_by_text("Taken back at")).to_be_visible()
    assert offline.get(f"/api/users/{user}/facts")["facts"] == {}
