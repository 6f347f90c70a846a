"""What a recall is asked for, with every default written once."""

from dataclasses import dataclass
from typing import Literal

from memory.mem_config import MemoryConfig
from memory.vector_index import Kind

Scoped = Literal["thread", "user"]
TimeUse = Literal["boost", "filter", "ignore"]
"""What a time that the query names does: raise what was said then, leave all else out, or nothing."""
Expansion = Literal["thread"]
KINDS: tuple[Kind, ...] = ("episode", "fact", "summary", "document")


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """How to recall.

    `window` counts turns, 0-50; `top_k` 0-50. `score_threshold` is a raw cosine in [-1, 1]; None takes the configured
    one, or else what is near in any channel, and gives a small memory whole. The weights are in [0, 1], and None leaves
    their step out. `tags`: only facts with one of them. `token_budget` packs: hits within so many tokens, long ones as
    excerpts, with the neighbours they need. `timezone` (IANA) is where the user's days begin. `fallback_recent`: where
    nothing is relevant, the newest few. `domains`: of the documents only those in one of these, and what the thread has
    attached; empty: all.
    """

    enabled: bool = True
    scope: Scoped = "thread"
    window: int = MemoryConfig.window
    top_k: int = MemoryConfig.top_k
    score_threshold: float | None = None
    recency_weight: float | None = None
    mmr_lambda: float | None = None
    kinds: tuple[Kind, ...] = KINDS
    tags: tuple[str, ...] = ()
    token_budget: int | None = None
    timezone: str = "UTC"
    time: TimeUse = "boost"
    expand: Expansion | None = None
    fallback_recent: bool = False
    domains: tuple[str, ...] = ()
