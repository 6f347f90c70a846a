"""The options of a recall, with every default written once."""

from typing import Any, Literal

from recollect.memory.ports.vector_index import Kind
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import Coverage, MemoryConfig, Scoped, TimeUse

CONFIGURED = (
    *("window", "top_k", "score_threshold", "scope", "recency_weight", "mmr_lambda"),
    *("time", "timezone", "fallback_recent", "coverage"),
)
"""The options whose defaults are the configuration's; the others are a request's alone."""
Expansion = Literal["thread"]
KINDS: tuple[Kind, ...] = ("episode", "fact", "summary", "document")


@frozen
class RecallOptions:
    """The options of one recall.

    `window` counts turns, 0-50; `top_k` hits, 0-50. `scope` is a turn's alone. `score_threshold` is a raw cosine in
    [-1, 1]; None keeps what is near in any channel, and returns a small memory whole. `recency_weight` and
    `mmr_lambda` are in [0, 1]; None skips the step. `tags`: only facts with one of them. `token_budget` packs the hits
    into this many tokens, long ones as excerpts, with the neighbours they need. `timezone` (IANA) defines the user's
    days. `fallback_recent` returns the newest few messages where nothing is relevant. `domains` limits the documents to
    these domains and to what the thread has attached; empty: all. `filter`: hits fulfil it.
    `agent_id`: the window, the facts and the hits have the label of this agent; `filter` says so too.
    """

    enabled: bool = True
    scope: Scoped = MemoryConfig.scope
    window: int = MemoryConfig.window
    top_k: int = MemoryConfig.top_k
    score_threshold: float | None = None
    recency_weight: float | None = MemoryConfig.recency_weight
    mmr_lambda: float | None = MemoryConfig.mmr_lambda
    kinds: tuple[Kind, ...] = KINDS
    tags: tuple[str, ...] = ()
    token_budget: int | None = None
    timezone: str = MemoryConfig.timezone
    time: TimeUse = MemoryConfig.time
    expand: Expansion | None = None
    fallback_recent: bool = MemoryConfig.fallback_recent
    domains: tuple[str, ...] = ()
    filter: Filter | None = None
    agent_id: str | None = None
    coverage: Coverage = MemoryConfig.coverage

    @classmethod
    def of(cls, config: MemoryConfig, **said: Any) -> "RecallOptions":
        """Return the options that are `said` over the configured defaults; None counts as not said."""
        given = {name: value for name, value in said.items() if value is not None}
        return cls(**{**{name: getattr(config, name) for name in CONFIGURED}, **given})
