"""The size of a run, and the settings of the measured service."""

from dataclasses import dataclass
from typing import Any

from benchmarks.processes import Server
from benchmarks.report import Row

Findings = tuple[list[Row], dict[str, Any]]
"""The rows of one measurement, and its raw figures for the JSON."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`starts` of an empty service, `turns` for latency, `users` for `seconds`, `reads` at `sizes` (all messages)."""

    starts: int
    window: int
    turns: int
    users: int
    seconds: float
    sizes: tuple[int, ...]
    reads: int

    def settings(self, model: Server, *, embedder: str) -> dict[str, str]:
        """Return the service's environment; settings that are missing here have their defaults."""
        return {
            "OPENAI_BASE_URL": model.model_url,
            "OPENAI_API_KEY": "none",
            "CHAT_MODEL": "fake-chat",
            "EMBEDDING_MODEL": embedder,
            "MEMORY_WINDOW": str(self.window),
        }


FULL = Plan(starts=5, window=10, turns=50, users=32, seconds=20.0, sizes=(1_000, 10_000, 100_000), reads=300)
QUICK = Plan(starts=0, window=1, turns=1, users=16, seconds=0.5, sizes=(200, 400), reads=30)
