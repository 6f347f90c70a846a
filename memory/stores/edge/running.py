"""Counts the engine's long calls."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(slots=True)
class Running:
    """Counts the long calls that run in threads, or wait there, of all collections that share it."""

    calls: int = 0

    async def wait_for(self, call: Awaitable[Answer]) -> Answer:
        """Wait for a long call that runs in a thread."""
        self.calls += 1
        try:
            return await call
        finally:
            self.calls -= 1
