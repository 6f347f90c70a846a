"""Users who talk while the service is killed: each repeats a turn until it is acknowledged, then says the next."""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.service.support.running import Service

KEYS = 5
"""Besides `home`, which every turn changes, turn n changes the key n modulo this."""


@dataclass
class Talker:
    """One user with one thread. Turn n says `my kN is vN, and my home is placeN`; `acknowledged` counts the turns."""

    user: str
    services: Sequence[Service]
    choice: random.Random
    acknowledged: int = 0
    repeats: int = 0
    problems: list[str] = field(default_factory=list[str])

    def talk(self, stop: threading.Event) -> None:
        """Talk until `stop` is set; repeat the running turn until it is acknowledged."""
        with httpx.Client(timeout=60) as client:
            while not stop.is_set():
                while not self.say(client, self.acknowledged):
                    self.repeats += 1
                    time.sleep(0.05)  # The service is down: a client tries again.
                self.acknowledged += 1

    def say(self, client: httpx.Client, number: int) -> bool:
        """Send a turn once; tell whether it was acknowledged. The same turn_id every time makes it one turn."""
        running = self.choice.choice(self.services)
        body = {"user_id": self.user, "thread_id": "t1", "turn_id": turn_id(number), "message": said(number)}
        try:
            answer = client.post(f"{running.url}/api/agent", json=body)
        except httpx.TransportError:
            return False
        if answer.status_code not in {200, 409, 503}:
            self.problems.append(answer.text)
        return answer.status_code == 200


def turn_id(number: int) -> str:
    return f"turn{number}"


def said(number: int) -> str:
    return f"my k{number % KEYS} is v{number}, and my home is place{number}"


def expected_changes(number: int) -> list[tuple[str, str, str | None, str]]:
    """Return the changes of turn n when it is learned from once, after the turns before it."""
    key, before = f"k{number % KEYS}", f"v{number - KEYS}" if number >= KEYS else None
    home = f"place{number - 1}" if number else None
    return [
        ("update" if before else "add", key, before, f"v{number}"),
        ("update" if home else "add", "home", home, f"place{number}"),
    ]


def changes_of(turn: dict[str, Any]) -> list[tuple[str, str, str | None, str]]:
    """Return the changes that a turn shows."""
    shown = turn["memory"]["update"]["changes"]
    return [(change["decision"], change["key"], change["before"], change["after"]) for change in shown]
