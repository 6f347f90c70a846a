"""One Chromium for each file of tests; each test has windows of its own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.service.inspector.browser.chromium import CHROMIUM, MISSING, Window, chromium, window
from tests.service.support.running import Service


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run one browser; its tests are skipped where there is none.

    It ends with its module: while it runs, its event loop is the thread's, and no asynchronous test can run.
    """
    if not CHROMIUM.exists():
        pytest.skip(MISSING)
    with chromium() as running:
        yield running


@pytest.fixture
def person(browser: Browser, offline: Service) -> Iterator[Window]:
    """Open a window at the offline service."""
    with window(browser, offline.url) as opened:
        yield opened


@pytest.fixture
def plain_person(browser: Browser, offline: Service) -> Iterator[Window]:
    """Open a window at the offline service, with JavaScript off."""
    with window(browser, offline.url, java_script_enabled=False) as opened:
        yield opened
