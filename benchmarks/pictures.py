"""Makes the pictures of the inspector in docs/pictures: pages after a scripted conversation, light and dark."""

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, ViewportSize

from benchmarks.inspector import chromium
from benchmarks.processes import ROOT, service

FOLDER = ROOT / "docs" / "pictures"
USER = "ada"
SAID = (
    ("monday", "My name is Ada. I live in Paris. I work as a pilot."),
    ("monday", "I love green tea, and my favorite color is blue."),
    ("tuesday", "I live in Lyon now."),
    ("tuesday", "Where do I live, and what do I like to drink?"),
)
TURN = "turn-{}"
PAGES: Mapping[str, str] = {
    "talk": f"/users/{USER}/talk?thread=tuesday#turn-turn-3",
    "facts": f"/users/{USER}/facts",
    "why": f"/users/{USER}/turns/{TURN.format(3)}",
    "search": f"/users/{USER}/search?query=Where+do+I+live%3F",
}
SIZE = ViewportSize(width=1200, height=860)
MOST_BYTES = 150_000


def main(arguments: list[str] | None = None) -> None:
    """Serve an empty memory, talk, and take the pictures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description="Pictures of the inspector.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pictures go")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="recollect-bench-") as data,
        service(Path(data), {}) as running,
        chromium() as browser,
    ):
        address = f"http://127.0.0.1:{running.port}"
        _talk(address)
        for scheme in ("light", "dark"):
            _take(browser, address, folder, scheme)


def _talk(address: str) -> None:
    with httpx.Client(base_url=address, timeout=60) as http:
        for number, (thread, message) in enumerate(SAID, start=1):
            body = {"user_id": USER, "thread_id": thread, "message": message, "turn_id": TURN.format(number)}
            memory = {"scope": "user", "window": 0}
            http.post("/api/agent", json={**body, "memory": memory, "wait_for_memory": True}).raise_for_status()


def _take(browser: Browser, address: str, folder: Path, scheme: str) -> None:
    # "dark" is Playwright's word too.
    context = browser.new_context(viewport=SIZE, color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    for name, path in PAGES.items():
        page.goto(f"{address}{path}")
        _save(page, folder / f"{name}-{scheme}.png")
    context.close()


def _save(page: Page, file: Path) -> None:
    size = len(page.screenshot(path=file, animations="disabled", caret="hide"))
    if size > MOST_BYTES:
        raise RuntimeError(f"{file.name} has {size:,} bytes; at most {MOST_BYTES:,} are wanted.")
    print(f"{file.name}: {size / 1_000:.0f} kB")


if __name__ == "__main__":
    main()
