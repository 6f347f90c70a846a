"""The first minutes in Firefox: tell something, see what it taught and why, find it among what is known."""

from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.inspector.browser.firefox import ENTER, FIREFOX, MISSING, firefox
from tests.service.support.running import Service
from tests.service.support.scripts import learning


@pytest.mark.skipif(not FIREFOX.exists(), reason=MISSING)
def test_firefox_talks_shows_why_and_what_is_known(
    served: Service, model: FakeOpenAI, user: str, tmp_path: Path
) -> None:
    model.on_chat = learning
    address = f"{served.url}/users/{user}"
    with firefox(tmp_path) as browser:
        browser.open(f"{address}/talk")
        browser.click("#message")
        browser.press(f"my colour is green{ENTER}")
        browser.until("document.querySelector('#turns article ins')?.textContent.includes('green')")
        browser.open(f"{address}/threads")
        browser.open(browser.read("document.querySelector('main .cards a').href"))
        browser.click("details.why summary")
        browser.until("document.querySelector('.opened')?.textContent.includes('colour')")
        browser.open(f"{address}/facts")
        assert "green" in browser.read("document.querySelector('main').innerText")
        assert browser.read("document.querySelector('time')?.title ?? ''") != ""
        assert browser.problems == []
