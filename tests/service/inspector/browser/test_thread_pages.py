"""Threads, turns and Search in a browser."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.fakes.openai_server import FakeOpenAI
from tests.service.inspector.browser.chromium import Window, window
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service

pytestmark = pytest.mark.slow

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>{{ 7 * 7 }}\u202e' + "w" * 3_000


@pytest.fixture
def turn_id(offline: Service, user: str) -> str:
    """Have the user talk in two threads, with hostile texts; return the last turn's id."""
    for number in range(7):
        offline.turn(f"My pizza number {number} had figs on it.", user=user, thread="t0", wait_for_memory=True)
    offline.turn(HOSTILE, user=user, thread="t1")
    offline.http.patch("/api/threads/t1", params={"user_id": user}, json={"title": HOSTILE[:200]})
    options = {"scope": "user", "top_k": 2}
    turn = offline.turn("I live in Oslo. Which pizza had figs?", user=user, thread="t1", memory=options)
    offline.settled(turn["turn_id"], user=user)
    found: str = turn["turn_id"]
    return found


def test_every_state_is_accessible_with_hostile_texts(person: Window, user: str, turn_id: str) -> None:
    own = f"/users/{user}"
    searched = f"{own}/search?query=pizza+with+figs&top_k=2&compare=1&second_top_k=1"
    paths = [
        f"{own}/threads",
        f"{own}/threads?text=nowhere",
        f"{own}/threads/t1",
        f"{own}/threads/t1/delete",
        *(f"{own}/turns/{turn_id}{act}" for act in ("", "/undo", "/learn", "/regenerate")),
        f"{own}/search?query=figs&top_k=99",
        searched,
    ]
    person.expected.append("error: Failed to load resource: the server responded with a status of 422")
    for path in paths:
        person.open(path)
        person.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        person.check_accessible_everywhere()


def test_a_turn_opens_into_its_why_by_keyboard(person: Window, user: str, turn_id: str) -> None:
    person.open(f"/users/{user}/threads/t1")
    person.page.locator("summary", has_text=re.compile("^Why$")).last.focus()
    person.page.keyboard.press("Enter")
    why = person.page.locator(".opened").last
    expect(why.get_by_role("heading", name="What was recalled")).to_be_visible()
    expect(why.get_by_text("all channels").first).to_be_visible()
    person.check_accessible()
    person.page.locator("details[open] > p > a").first.click()
    expect(person.page).to_have_url(f"{person.url}/users/{user}/turns/{turn_id}")
    expect(person.page.locator("mark")).to_have_text("I live in Oslo")


def test_an_undo_is_asked_in_a_dialog(person: Window, plain_person: Window, offline: Service, user: str) -> None:
    for one, city in ((person, "Oslo"), (plain_person, "Rome")):
        turn_id = offline.turn(f"I live in {city}.", user=user, wait_for_memory=True)["turn_id"]
        one.open(f"/users/{user}/turns/{turn_id}")
        one.page.get_by_role("link", name="Undo what it taught").click()
        one.page.get_by_role("button", name="Undo").click()
        expect(one.page.get_by_text("Taken back at")).to_be_visible()
        assert city not in offline.get(f"/api/users/{user}/facts")["facts"].values()


def test_a_thread_is_found_named_and_deleted(person: Window, plain_person: Window, offline: Service, user: str) -> None:
    for one, thread in ((person, "t1"), (plain_person, "t2")):
        offline.turn(f"About the harbour of {thread}.", user=user, thread=thread)
        one.open(f"/users/{user}/threads")
        one.page.get_by_label("Search in titles").fill(f"OF {thread}")
        one.page.get_by_role("search").get_by_role("button", name="Search").click()
        one.page.get_by_role("link", name=f"About the harbour of {thread}.").click()
        one.page.get_by_label("Title").fill(f"Harbour {thread}")
        one.page.get_by_role("button", name="Save the title").click()
        expect(one.page.get_by_role("heading", level=1)).to_have_text(f"Harbour {thread}")
        one.page.get_by_role("link", name="Delete the thread").click()
        one.page.get_by_role("button", name="Delete", exact=True).click()
        expect(one.page).to_have_url(f"{one.url}/users/{user}/threads")
        expect(one.page.get_by_text(f"Harbour {thread}")).to_have_count(0)


def test_a_search_is_compared(person: Window, plain_person: Window, user: str, turn_id: str) -> None:
    for one in (person, plain_person):
        one.open(f"/users/{user}/search")
        one.page.get_by_label("Look for").fill("pizza with figs")
        one.page.get_by_role("button", name="Search", exact=True).click()
        expect(one.page.get_by_role("heading", name="Hits", exact=True)).to_have_count(1)
        one.page.get_by_role("button", name="Compare two settings").click()
        expect(one.page.get_by_role("heading", name="Hits", exact=True)).to_have_count(2)
        one.page.locator("#second_top_k").fill("1")
        one.page.get_by_role("button", name="Search", exact=True).click()
        expect(one.page.get_by_text("1 hit in")).to_be_visible()
        expect(one.page.get_by_text("5 hits in")).to_be_visible()


def test_learning_again_is_accessible_in_each_of_its_states(
    browser: Browser, served: Service, model: FakeOpenAI, user: str
) -> None:
    message = "I live in Oslo, and I like green."
    turn_id = served.turn(message, user=user, wait_for_memory=True)["turn_id"]
    teach(model, {message: [add("green", key="colour", evidence="I like green"), add("tin", key="metal")]})
    with window(browser, served.url) as person:
        person.expected.append("error: Failed to load resource: the server responded with a status of 409")
        page = person.open(f"/users/{user}/turns/{turn_id}/learn")
        page.get_by_role("button", name="Show the difference").click()
        expect(page.get_by_role("insertion")).to_have_text("green")
        expect(page.get_by_text("Refused:")).to_be_visible()
        person.check_accessible_everywhere()
        served.http.put(f"/api/users/{user}/facts/by-key/colour", json={"value": "blue"})
        page.get_by_role("button", name="Apply exactly this").click()
        expect(page.get_by_text("Nothing was changed.")).to_be_visible()
        person.check_accessible_everywhere()
        assert served.get(f"/api/users/{user}/facts")["facts"] == {"colour": "blue"}
