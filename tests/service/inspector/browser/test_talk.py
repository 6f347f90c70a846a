"""Talk in an open page: answers that stream, outages, words that stay."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.fakes.openai_server import FakeOpenAI
from tests.service.inspector.browser.chromium import Window, window
from tests.service.support.locked import made_key
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import facts, learning, texts

HOSTILE = "<img src=x onerror=alert(1)>{{ 7 * 7 }}</template><script>alert(2)</script>\u202e" + "W" * 500
FAILED = "error: Failed to load resource"


@pytest.fixture
def talking(browser: Browser, served: Service, model: FakeOpenAI) -> Iterator[Window]:
    """Open a window at the service with the scripted model."""
    model.on_chat = learning
    with window(browser, served.url) as opened:
        yield opened


def say(page: Page, words: str) -> None:
    """Type and send."""
    page.get_by_label("Your message").fill(words)
    page.get_by_role("button", name="Send", exact=True).click()


def last(page: Page) -> Locator:
    """Return the last turn."""
    return page.locator("#turns article").last


def test_an_answer_streams_beside_what_was_recalled_and_taught(talking: Window, model: FakeOpenAI, user: str) -> None:
    page = talking.open(f"/users/{user}/talk")
    say(page, "my colour is green")
    expect(last(page).locator("ins")).to_have_text("green")
    expect(page.get_by_label("Your message")).to_have_value("")
    expect(page).to_have_url(
        f"{talking.url}/users/{user}/talk?thread={page.locator('[name=thread_id]').last.input_value()}"
    )
    model.script("One two three four five six.")
    model.piece_seconds = 0.2
    say(page, "What do you know?")
    expect(last(page)).to_have_attribute("aria-busy", "true")
    expect(last(page).locator(".talk-reply")).to_contain_text("One")
    expect(last(page).locator(".talk-recalled")).to_contain_text("colour")
    talking.check_accessible()
    expect(last(page)).to_contain_text("One two three four five six.")
    expect(last(page)).not_to_have_attribute("aria-busy", "true")
    expect(last(page)).to_contain_text("Nothing new.")
    talking.check_accessible_everywhere()
    page.reload()
    expect(page.locator("#turns article")).to_have_count(2)


def test_a_turn_is_not_remembered(talking: Window, served: Service, user: str) -> None:
    page = talking.open(f"/users/{user}/talk")
    page.get_by_label("Do not remember this turn").check()
    say(page, "my colour is green")
    expect(last(page)).to_contain_text("Not remembered")
    expect(page.get_by_label("Do not remember this turn")).not_to_be_checked()
    assert facts(served, user=user) == {}


def test_it_is_used_by_keyboard_alone(talking: Window, served: Service, user: str) -> None:
    page = talking.open(f"/users/{user}/talk")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "message":
            break
    page.keyboard.type("my colour is green")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("my size is tall")
    page.keyboard.press("Enter")
    expect(last(page)).to_contain_text("All right.")
    expect(page.get_by_label("Your message")).to_be_focused()
    thread = page.locator("#talk [name=thread_id]").input_value()
    assert texts(served, user=user, thread=thread)[0] == ("user", "my colour is green\nmy size is tall")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_label("Do not remember this turn")).to_be_checked()


def test_an_error_leaves_the_words_and_sends_them_once(
    talking: Window, served: Service, model: FakeOpenAI, user: str
) -> None:
    page = talking.open(f"/users/{user}/talk")
    model.fail(400, times=-1)
    say(page, "my colour is green")
    again = last(page).get_by_role("button", name="Send it again")
    expect(again).to_be_visible()
    expect(last(page).locator(".notice.bad")).to_be_visible()
    talking.check_accessible_everywhere()
    page.reload()
    model.recover()
    again.click()
    expect(last(page)).to_contain_text("All right.")
    expect(page.locator("#turns article")).to_have_count(1)
    thread = page.locator("#talk [name=thread_id]").input_value()
    assert texts(served, user=user, thread=thread) == [("user", "my colour is green"), ("assistant", "All right.")]


def test_words_that_are_refused_stay_and_may_be_changed(talking: Window, user: str) -> None:
    talking.expected += [FAILED]
    page = talking.open(f"/users/{user}/talk")
    page.get_by_label("Your message").fill("x")
    page.get_by_label("Your message").evaluate("area => { area.value = 'x'.repeat(200001) }")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#problem")).to_contain_text("200,000 characters")
    assert len(page.get_by_label("Your message").input_value()) == 200_001
    talking.check_accessible_everywhere()
    say(page, "my colour is green")
    expect(last(page)).to_contain_text("All right.")
    expect(page.locator("#problem")).to_be_empty()


def test_a_turn_goes_on_after_the_service_was_killed(browser: Browser, tmp_path: Path, fake: FakeOpenAI) -> None:
    with service(tmp_path, **model_settings(fake.url)) as running, window(browser, running.url) as person:
        person.expected += [FAILED]
        page = person.open("/users/ada/talk")
        fake.hang()
        say(page, "my colour is green")
        expect(page.get_by_label("Your message")).to_have_value("")
        page.get_by_label("Your message").fill("my size is tall")
        running.kill()
        expect(page.get_by_text("The service does not answer.")).to_be_visible()
        person.check_accessible_everywhere()
        fake.recover()
        running.start()
        expect(page.get_by_role("status").get_by_text("Answered.")).to_be_visible(timeout=20_000)
        expect(last(page)).to_contain_text("All right.")
        expect(page.get_by_label("Your message")).to_have_value("my size is tall")
        running.kill()
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_text("Waiting for the service.")).to_be_visible()
        expect(page.get_by_label("Your message")).to_have_value("my size is tall")
        running.start()
        expect(page.locator("#turns article")).to_have_count(2)
        expect(last(page)).to_contain_text("All right.", timeout=20_000)
        expect(page.get_by_label("Your message")).to_have_value("")
        thread = page.locator("#talk [name=thread_id]").input_value()
        assert [text for role, text in texts(running, thread=thread) if role == "user"] == [
            "my colour is green",
            "my size is tall",
        ]


def test_words_stay_where_the_session_ends(browser: Browser, tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key") as running, window(browser, running.url) as person:
        person.expected += [FAILED]
        page = person.open("/sign-in?next=/users/ada/talk")
        page.get_by_label("Key or token").fill(made_key(running, "user:ada")["key"])
        page.get_by_role("button", name="Sign in").click()
        person.context.clear_cookies()
        say(page, "My name is Ada.")
        expect(page.locator("#problem")).to_contain_text("Sign in in another tab")
        expect(page.get_by_label("Your message")).to_have_value("My name is Ada.")
        person.check_accessible_everywhere()
        other = person.context.new_page()
        other.goto(f"{running.url}/sign-in")
        other.get_by_label("Key or token").fill(made_key(running, "user:ada")["key"])
        other.get_by_role("button", name="Sign in").click()
        expect(other.get_by_role("button", name="Sign out")).to_be_visible()
        page.get_by_role("button", name="Send", exact=True).click()
        expect(last(page).locator("ins").first).to_be_visible()


def test_hostile_words_are_shown_as_text(person: Window, plain_person: Window, user: str) -> None:
    page = person.open(f"/users/{user}/talk")
    say(page, f"My name is {HOSTILE}")
    expect(last(page).locator("ins, .muted").first).to_be_visible()
    expect(last(page)).to_contain_text("<script>alert(2)</script>")
    person.check_accessible_everywhere()
    shown = plain_person.open(page.url.removeprefix(person.url))
    expect(last(shown)).to_contain_text("<script>alert(2)</script>")


def test_it_works_without_javascript(plain_person: Window, user: str) -> None:
    page = plain_person.open(f"/users/{user}/talk")
    say(page, "My name is Ada.")
    expect(page.locator("#turns article")).to_have_count(1)
    expect(last(page).locator("ins").first).to_have_text("Ada")
    page.get_by_role("link", name="New thread").click()
    expect(page.locator("#turns article")).to_have_count(0)
    page.get_by_text("Earlier threads").click()
    page.get_by_role("link", name="My name is Ada.").click()
    expect(page.locator("#turns article")).to_have_count(1)
    page.get_by_role("link", name="Take it back").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Taken back")).to_be_visible()
