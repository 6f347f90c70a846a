"""Acts of people whose browser runs no scripts, from the sign-in to the sign-out; other files here have the rest."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.fakes.openai_server import FakeOpenAI
from tests.service.inspector.browser.chromium import Window, window
from tests.service.support.lessons import add, teach
from tests.service.support.locked import bearer, made_key, owner_token
from tests.service.support.running import Service, model_settings, service

pytestmark = pytest.mark.slow

MESSAGE = "I live in Oslo, and I like green."
CITY = add("Oslo", key="city", evidence="I live in Oslo")
COLOUR = add("green", key="colour", evidence="I like green")
LESSONS: Mapping[str, Sequence[Mapping[str, Any]]] = {MESSAGE: [CITY]}


@pytest.fixture
def plain(browser: Browser, served: Service, model: FakeOpenAI) -> Iterator[Window]:
    """Open a window at the service with the scripted model."""
    teach(model, LESSONS)
    with window(browser, served.url, java_script_enabled=False) as opened:
        yield opened


def test_a_turn_is_learned_from_again_regenerated_and_undone_but_for_what_changed(
    plain: Window, served: Service, model: FakeOpenAI, user: str
) -> None:
    turn_id = served.turn(MESSAGE, user=user, wait_for_memory=True)["turn_id"]
    page = plain.open(f"/users/{user}/turns/{turn_id}")
    teach(model, {MESSAGE: [CITY, COLOUR]})
    page.get_by_role("link", name="Learn again").click()
    page.get_by_role("button", name="Show the difference").click()
    expect(page.get_by_role("insertion")).to_have_text("green")
    page.get_by_role("button", name="Apply exactly this").click()
    expect(page.locator("mark").last).to_have_text("I like green")
    model.script("A cucumber answer.")
    page.get_by_role("link", name="Regenerate the reply").click()
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_text("A cucumber answer.").first).to_be_visible()
    served.settled(turn_id, user=user)
    served.http.put(f"/api/users/{user}/facts/by-key/city", json={"value": "Bergen"})
    plain.expected.append("error: Failed to load resource: the server responded with a status of 409")
    page.get_by_role("link", name="Undo what it taught").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Facts have changed since")
    page.get_by_role("button", name="Undo the rest").click()
    expect(page.get_by_text("Left as they were")).to_be_visible()
    assert served.get(f"/api/users/{user}/facts")["facts"] == {"city": "Bergen"}


def test_a_summary_is_edited_and_a_thread_archived(plain_person: Window, offline: Service, user: str) -> None:
    offline.turn("Hello.", user=user, thread="t1")
    page = plain_person.open(f"/users/{user}/threads/t1")
    page.get_by_text("Edit the summary").click()
    page.get_by_label("Summary, at most").fill("We met.")
    page.get_by_role("button", name="Save the summary").click()
    expect(page.get_by_text("Written by a person")).to_be_visible()
    page.get_by_role("button", name="Archive the thread").click()
    expect(page.get_by_text("It is archived")).to_be_visible()


def test_somebody_signs_in_decides_on_proposals_and_signs_out(
    browser: Browser, fake: FakeOpenAI, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = model_settings(fake.url, AUTH="api_key", REVIEW="all")
    with (
        service(tmp_path_factory.mktemp("reviewed"), **settings) as running,
        window(browser, running.url, java_script_enabled=False) as plain,
    ):
        owner = bearer(owner_token(running))
        for number, words in enumerate(("my city is Oslo", "my dog is Rex")):
            body = {"user_id": "ada", "thread_id": f"t{number}", "message": words, "wait_for_memory": True}
            running.http.post("/api/agent", json=body, headers=owner).raise_for_status()
        page = plain.open("/users/ada/facts")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        page.get_by_label("Key or token").fill(made_key(running, "user:ada")["key"])
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Show them").click()
        page.get_by_role("button", name="Approve city").click()
        page.get_by_role("button", name="Reject dog").click()
        expect(page.get_by_text("No fact fits.")).to_be_visible()
        known = running.http.get("/api/users/ada/facts", headers=owner).json()["facts"]
        assert known == {"city": "Oslo"}
        page.get_by_role("button", name="Sign out").click()
        plain.open("/users/ada/facts")
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
