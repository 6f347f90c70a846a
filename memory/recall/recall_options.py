"""The options of a recall, with every default written once."""

from dataclasses import dataclass
from typing import Literal

from recollect.memory.ports.vector_index import Kind
from recollect.memory.values.filter import Filter
from recollect.memory.values.mem_config import MemoryConfig

Scoped = Literal["thread", "user"]
TimeUse = Literal["boost", "filter", "ignore"]
"""The effect of a time that the query names: raise what was said then, leave all else out, or none."""
Expansion = Literal["thread"]
KINDS: tuple[Kind, ...] = ("episode", "fact", "summary", "document")


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """The options of one recall.

    `window` counts turns, 0-50; `top_k` hits, 0-50. `score_threshold` is a raw cosine in [-1, 1]; None takes the
    configured one, or else keeps what is near in any channel, and returns a small memory whole. `recency_weight` and
    `mmr_lambda` are in [0, 1]; None skips the step. `tags`: only facts with one of them. `token_budget` packs the hits
    into this many tokens, long ones as excerpts, with the neighbours they need. `timezone` (IANA) defines the user's
    days. `fallback_recent` returns the newest few messages where nothing is relevant. `domains` limits the documents to
    these domains and to what the thread has attached; empty: all. `filter`: hits fulfil it.
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
    filter: Filter | None = None
