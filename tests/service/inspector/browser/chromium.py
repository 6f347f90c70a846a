"""Debian's Chromium, driven by Playwright, with pages that fail their test on any error or policy report."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MISSING = f"there is no {CHROMIUM}: `apt-get install chromium` lets the browser's tests run"
NARROW = 360
AXE = Path(__file__).parent / "vendor" / "axe.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""
SEND = """
([path, fields]) => {
  const form = document.createElement("form");
  [form.method, form.action] = ["post", path];
  const token = document.querySelector("input[name=token]")?.value ?? "";
  for (const [name, value] of Object.entries({ token, ...fields })) {
    const field = document.createElement("textarea");
    [field.name, field.value] = [name, value];
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}
"""


@contextmanager
def chromium() -> Generator[Browser]:
    """Run the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Window:
    """One person's browser window at a service: cookies of its own, and a record of all that went wrong.

    `expected` are beginnings of errors that the test provokes.
    """

    context: BrowserContext
    page: Page
    url: str
    problems: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])

    def __enter__(self) -> Self:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._asked)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            self.check()

    def open(self, path: str) -> Page:
        """Open an address of the service."""
        self.page.goto(f"{self.url}{path}")
        return self.page

    def check(self) -> None:
        """Fail where the page had an error, a policy report, or a request to anywhere but the service."""
        left = [problem for problem in self.problems if not problem.startswith(tuple(self.expected) or ("\0",))]
        assert left == [], left

    def check_accessible(self) -> None:
        """Fail where axe-core finds something on the page as it is now, or where it is wider than its window."""
        if not self.page.evaluate("'axe' in window"):
            # A script of the tests' own: the page's policy would not load it.
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = self.page.evaluate(
            "async (rules) => (await axe.run(document, {runOnly: rules})).violations", RULES
        )
        shown = [f"{one['id']}: {one['help']} {[node['html'] for node in one['nodes']]}" for one in found]
        assert shown == []
        wide: bool = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not wide, "the page scrolls sideways"

    def check_accessible_everywhere(self) -> None:
        """Check the page as it is now in light and dark colours, in a wide and a narrow window."""
        for width in (1280, NARROW):
            self.page.set_viewport_size({"width": width, "height": 740})
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                self.check_accessible()

    def post(self, path: str, **fields: str) -> int:
        """Send a form as the open page would, with its token unless another is given; return the answer's status."""
        with self.page.expect_navigation() as navigation:
            self.page.evaluate(SEND, [path, fields])
        assert navigation.value is not None
        return navigation.value.status

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.problems.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:")):
            self.problems.append(f"elsewhere: {request.url}")


def window(browser: Browser, url: str, **options: Any) -> Window:
    """Return a new window; `options` are Playwright's (`java_script_enabled`, `color_scheme`, `viewport`, …)."""
    context = browser.new_context(**options)
    context.add_init_script(VIOLATIONS)
    return Window(context, context.new_page(), url)
