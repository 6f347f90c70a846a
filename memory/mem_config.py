"""Everything the memory can be told, as one frozen value. Defaults are written here once; settings.py repeats none."""

from dataclasses import dataclass, field, fields
from dataclasses import replace as _replace
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class MemoryConfig:
    """How a memory is stored, searched and learned.

    Unset URLs choose the embedded backends in `data_dir`; neither key nor base URL chooses the built-in offline models.
    Budgets are in tokens (see `memory/tokens.py`), times in seconds.
    """

    # Where it is kept.
    data_dir: Path = Path("data")
    mongodb_url: str | None = field(default=None, repr=False)
    mongodb_database: str = "recollect"
    qdrant_url: str | None = None
    qdrant_api_key: str | None = field(default=None, repr=False)
    qdrant_collection: str = "recollect"
    qdrant_prefer_grpc: bool = True
    qdrant_grpc_port: int = 6334

    # Which models it uses.
    provider: str | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    chat_model: str | None = None
    extraction_model: str | None = None
    embedding_model: str | None = None
    embedding_dimensions: int | None = None
    embedding_model_path: Path | None = None
    reranker: str | None = None
    reranker_path: Path | None = None
    chat_timeout_seconds: float = 60.0
    embedding_timeout_seconds: float = 20.0

    # What a turn recalls.
    window: int = 10
    window_tokens: int = 4_000
    facts_tokens: int = 1_000
    top_k: int = 5
    score_threshold: float | None = None
    recall_tokens: int = 1_500
    recall_timeout_seconds: float = 5.0

    # What it learns. `extraction_model` may name several, separated by commas, in order of preference.
    extraction_prompt_file: Path | None = None
    extraction_schema_file: Path | None = None
    duplicate_similarity: float = 0.9
    learn_every: int = 1
    learn_idle_seconds: float = 0.0
    review: Literal["off", "sensitive", "all"] = "off"
    sensitive_tags: tuple[str, ...] = ("health", "religion", "politics", "sexuality", "finance")
    summary_every: int = 10
    summary_tokens: int = 500
    archive_tokens: int = 0

    # What it keeps; 0 sets no bound.
    fact_retention_days: float = 0.0
    episode_retention_days: float = 0.0
    max_facts_per_user: int = 0
    max_episodes_per_user: int = 0

    # How large a document may be.
    max_document_pages: int = 500
    max_document_characters: int = 5_000_000
    max_unpacked_mb: int = 100

    # How it waits.
    memory_wait_seconds: float = 30.0
    thread_wait_seconds: float = 30.0
    shutdown_seconds: float = 10.0
    update_concurrency: int = 32
    sweep_seconds: float = 5.0

    def replace(self, **changes: Any) -> "MemoryConfig":
        """The same configuration with some fields changed."""
        return _replace(self, **changes)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The fields' names: settings of the same names fill them."""
        return tuple(item.name for item in fields(cls))
