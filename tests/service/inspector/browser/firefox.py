"""Firefox, driven through WebDriver BiDi: the browser speaks it by itself, so no driver stands between."""

import itertools
import json
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

FIREFOX = Path("/usr/bin/firefox-esr")
MISSING = f"there is no {FIREFOX}: `apt-get install firefox-esr` lets its test run"
WAIT_SECONDS = 30.0
ENTER = "\ue007"
VIOLATIONS = """() => document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))"""
_LISTENS = "WebDriver BiDi listening on "
Json = dict[str, Any]


class Firefox:
    """One tab. `problems` are errors that its console showed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.problems = list[str]()
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.call("script.addPreloadScript", functionDeclaration=VIOLATIONS)
        self._tab: str = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method: str, **parameters: Any) -> Json:
        """Send a command, and return its result."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer: Json = json.loads(self._connection.recv(WAIT_SECONDS))
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                return answer["result"]
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.problems.append(str(answer["params"]["text"]))

    def open(self, url: str) -> None:
        """Open an address, and wait until it is loaded."""
        self.call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def read(self, expression: str) -> Any:
        """Return the value of a JavaScript expression: a text, a number, a boolean or None."""
        target = {"context": self._tab}
        ran = self.call("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert ran["type"] == "success", ran
        return ran["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.read(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"never: {expression}\n{self.read('document.body.innerText')}"
            time.sleep(0.05)

    def press(self, text: str) -> None:
        """Press keys, one after the other."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("input.performActions", context=self._tab, actions=[{"type": "key", "id": "keys", "actions": keys}])

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of an element."""
        found = self.call(
            "browsingContext.locateNodes", context=self._tab, locator={"type": "css", "value": selector}, maxNodeCount=1
        )
        element = {"type": "element", "element": {"sharedId": found["nodes"][0]["sharedId"]}}
        moves = [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": element},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "actions": moves}
        self.call("input.performActions", context=self._tab, actions=[mouse])


@contextmanager
def firefox(profile: Path) -> Generator[Firefox]:
    """Run the browser with a new profile in a folder, and stop it at the end."""
    command = [FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"]
    log_file = profile / "browser.log"
    with (
        log_file.open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=_environment(profile)) as process,
    ):
        try:
            with connect(f"{_address(process, log_file)}/session", max_size=None, proxy=None) as connection:
                yield Firefox(connection)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _environment(profile: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(profile), "MOZ_DISABLE_CONTENT_SANDBOX": "1"}


def _address(process: "subprocess.Popen[bytes]", log_file: Path) -> str:
    """Wait until the browser says at which address it listens."""
    deadline = time.monotonic() + WAIT_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        _, found, rest = log_file.read_text(encoding="utf-8", errors="replace").partition(_LISTENS)
        if found and "\n" in rest:
            return rest.split()[0]
        time.sleep(0.05)
    raise AssertionError(f"Firefox did not come up:\n{log_file.read_text(encoding='utf-8', errors='replace')}")
