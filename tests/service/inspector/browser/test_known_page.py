"""The page "What is known" in a browser."""

import pytest
from playwright.sync_api import Browser, expect

from tests.service.inspector.browser.chromium import Window, window
from tests.service.support.facts_of import FactsOf
from tests.service.support.running import Service

pytestmark = pytest.mark.slow

HOSTILE = '<script>document.title="run"</script>{{7*7}}<img src=x onerror=alert(1)>\u202egnal' + "W" * 400
FAILED = "error: Failed to load resource: the server responded with a status of"


@pytest.fixture
def ada(offline: Service, user: str) -> FactsOf:
    return FactsOf(offline, user)


def home(ada: FactsOf) -> str:
    return f"/users/{ada.user}/facts"


def test_a_fact_is_added_edited_pinned_and_forgotten(person: Window, plain_person: Window, ada: FactsOf) -> None:
    for one, city in ((person, "Oslo"), (plain_person, "Rome")):
        page = one.open(home(ada))
        page.get_by_role("link", name="Add a fact").click()
        page.get_by_label("Key").fill("city")
        page.get_by_label("Text").fill(city)
        page.get_by_role("button", name="Store").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("A fact")
        page.get_by_role("link", name="Edit city").click()
        page.get_by_label("Text").fill(f"{city} East")
        page.get_by_role("button", name="Store").click()
        expect(page.locator(".timeline li").first).to_contain_text(f"{city} East")
        page.get_by_role("button", name="Pin city").click()
        expect(page.get_by_role("button", name="Unpin city")).to_be_visible()
        page.get_by_role("link", name="Forget city").click()
        expect(page.locator(".confirm li")).to_have_text([f"city: {city} East", f"city: {city}"])
        expect(page.locator(".confirm")).to_contain_text("This cannot be undone.")
        page.get_by_role("button", name="Forget", exact=True).click()
        expect(page.get_by_text("Nothing is known yet.")).to_be_visible()
        assert ada.items() == []


def test_an_edit_of_what_has_changed_shows_both_and_keeps_the_words(person: Window, ada: FactsOf) -> None:
    city = ada.put("city", value="Oslo")
    page = person.open(f"{home(ada)}/{city['id']}/edit")
    page.get_by_label("Text").fill("Bergen")
    ada.put("city", value="Rome")
    person.expected.append(f"{FAILED} 412")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_text("Nothing was stored.")).to_be_visible()
    expect(page.locator(".versions").first).to_contain_text("Rome")
    expect(page.get_by_label("Text")).to_have_value("Bergen")
    expect(page.locator(".notice[autofocus]")).to_be_focused()
    person.check_accessible()
    assert ada.known() == {"city": "Rome"}
    page.get_by_role("button", name="Store mine").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A fact")
    assert ada.known() == {"city": "Bergen"}


def test_words_that_cannot_be_stored_stay_in_the_form(person: Window, ada: FactsOf) -> None:
    page = person.open(f"{home(ada)}/new")
    person.expected.append(f"{FAILED} 422")
    page.get_by_label("Text").fill("Likes tea.")
    page.get_by_label("Importance").fill("much")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_text("must be between 0 and 1")).to_be_visible()
    expect(page.get_by_label("Text")).to_have_value("Likes tea.")
    person.check_accessible()
    page.get_by_label("Importance").fill("0.9")
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("A fact")


def test_forgetting_is_asked_in_a_dialog_by_keyboard(person: Window, ada: FactsOf) -> None:
    ada.put("city", value="Oslo")
    page = person.open(home(ada))
    page.get_by_role("link", name="Forget city").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    person.check_accessible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert ada.known() == {"city": "Oslo"}
    page.get_by_role("link", name="Forget city").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Forget").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is known yet.")).to_be_visible()


def test_times_of_forms_are_in_the_readers_zone(browser: Browser, offline: Service, ada: FactsOf) -> None:
    ada.put("city", value="Oslo", valid_from="2020-01-01T00:00:00Z")
    ada.put("city", value="Rome")
    with window(browser, offline.url, timezone_id="America/New_York") as person:
        page = person.open(home(ada))
        page.get_by_label("As of (America/New_York)").fill("2019-12-31T18:59:00")
        page.get_by_role("button", name="Show", exact=True).last.click()
        expect(page.get_by_text("No fact fits.")).to_be_visible()
        assert page.url == f"{person.url}{home(ada)}?as_of=2019-12-31T23%3A59%3A00.000Z"
        page.get_by_label("As of").fill("2019-12-31T19:01:07")
        page.get_by_role("button", name="Show", exact=True).last.click()
        expect(page.locator(".fact")).to_contain_text("Oslo")
        expect(page.get_by_label("As of")).to_have_value("2019-12-31T19:01:07")
        fact = page.get_by_role("link", name="What became of it")
        fact.click()
        page.get_by_role("link", name="Edit city").click()
        tags = page.get_by_label("Tags")
        tags.fill("home")
        page.get_by_role("button", name="Store").click()
        expect(page.locator(".marks").first).to_contain_text("home")
        (now,) = ada.items()
        assert (now["value"], now["statement"]) == ("Rome", "city: Rome"), "an untouched time edits nothing"


def test_every_state_is_accessible_with_hostile_texts(person: Window, ada: FactsOf) -> None:
    ada.put("city", value=HOSTILE, tags=[HOSTILE[:64]], pinned=True)
    ada.put("mood", value=HOSTILE, scope="thread", thread_id="t" * 128)
    fact_id = ada.put("city", value=f"{HOSTILE} again")["id"]
    own = f"{home(ada)}/{fact_id}"
    states = ["", "?kind=thread", "?kind=global", "?text=none", "?as_of=2021-01-01T00:00"]
    addresses = [*(f"{home(ada)}{state}" for state in states), own, f"{own}/edit", f"{own}/forget"]
    for address in (*addresses, f"/users/{ada.user}/data/erase"):
        page = person.open(address)
        person.check_accessible_everywhere()
        assert "Recollect" in page.title()


def test_everything_is_erased_and_the_receipt_shown(person: Window, ada: FactsOf) -> None:
    ada.put("city", value="Oslo")
    page = person.open(home(ada))
    page.get_by_role("link", name="Erase everything").click()
    page.get_by_label("Type the user's id").fill(ada.user or "")
    page.get_by_role("button", name="Erase everything").click()
    expect(page.get_by_role("status").filter(has_text="Everything was erased")).to_be_visible()
    person.check_accessible()
    assert ada.known() == {}
