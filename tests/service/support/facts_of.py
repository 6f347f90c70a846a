"""A user's facts over HTTP, as the tests of people's verbs ask for them."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.service.support.running import Service
from tests.service.support.shapes import FACT, VERSION, check


@dataclass(frozen=True)
class FactsOf:
    """The facts of one user, or the global ones."""

    running: Service
    user: str | None

    @property
    def path(self) -> str:
        return "/api/global/facts" if self.user is None else f"/api/users/{self.user}/facts"

    def known(self, **query: Any) -> dict[str, str]:
        """Return the dict of facts."""
        found: dict[str, str] = self.running.get(self.path, **query)["facts"]
        return found

    def items(self, **query: Any) -> list[dict[str, Any]]:
        """Return one page's facts."""
        return [check(FACT, fact) for fact in self.running.get(self.path, limit=200, **query)["items"]]

    def one(self, key: str) -> dict[str, Any]:
        """Return the one fact that holds under a key."""
        (found,) = [fact for fact in self.items() if fact["key"] == key]
        return found

    def ask(self, method: str, path: str = "", body: Any = None) -> httpx.Response:
        """Send one call; return its answer, errors too."""
        return self.running.http.request(method, f"{self.path}{path}", json=body)

    def write(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Send one call that must answer with a fact."""
        answer = self.ask(method, path, body)
        assert answer.status_code == 200, answer.text
        return check(FACT, answer.json())

    def put(self, key: str, **body: Any) -> dict[str, Any]:
        return self.write("PUT", f"/by-key/{key}", body)

    def history(self, fact_id: str) -> list[dict[str, Any]]:
        """Return the fact's versions."""
        found = self.running.get(f"{self.path}/{fact_id}/history")
        assert found["next_cursor"] is None
        return [check(VERSION, version) for version in found["items"]]
