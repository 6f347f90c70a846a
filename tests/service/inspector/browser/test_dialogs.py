"""Confirmations as dialogs of an open page."""

import pytest
from playwright.sync_api import expect

from tests.service.inspector.browser.chromium import Window
from tests.service.support.facts_of import FactsOf
from tests.service.support.running import Service

pytestmark = pytest.mark.slow


def test_a_dialog_is_cancelled_emptied_and_opened_for_another_fact(person: Window, offline: Service, user: str) -> None:
    ada = FactsOf(offline, user)
    ada.put("city", value="Oslo")
    ada.put("colour", value="green")
    page = person.open(f"/users/{user}/facts")
    dialog = page.get_by_role("dialog")
    page.get_by_role("link", name="Forget city").click()
    expect(dialog.get_by_role("heading")).to_have_text("Forget this fact?")
    expect(dialog).to_contain_text("city: Oslo")
    person.check_accessible_everywhere()
    dialog.get_by_role("link", name="Cancel").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#dialog")).to_be_empty()
    expect(page.get_by_role("link", name="Forget city")).to_be_focused()
    expect(page).to_have_url(f"{person.url}/users/{user}/facts")
    page.get_by_role("link", name="Forget colour").click()
    expect(dialog).to_contain_text("colour: green")
    expect(dialog).not_to_contain_text("Oslo")
    dialog.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("link", name="Forget colour")).to_have_count(0)
    assert ada.known() == {"city": "Oslo"}


def test_what_has_gone_meanwhile_is_told_on_the_page_and_opens_no_dialog(
    person: Window, offline: Service, user: str
) -> None:
    offline.turn("Hello.", user=user, thread="t1")
    page = person.open(f"/users/{user}/threads/t1")
    assert offline.http.delete("/api/threads/t1", params={"user_id": user}).is_success
    person.expected.append("error: Failed to load resource: the server responded with a status of 404")
    page.get_by_role("link", name="Delete the thread").click()
    expect(page.locator("#notice .bad")).to_be_visible()
    expect(page.get_by_role("dialog")).to_be_hidden()
