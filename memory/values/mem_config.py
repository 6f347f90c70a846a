"""The configuration of a memory, one frozen value. Defaults are written here once; settings.py repeats none."""

import warnings
from dataclasses import InitVar, dataclass, field, fields
from dataclasses import replace as _replace
from pathlib import Path
from typing import Any, Literal

from recollect.memory.values.given import GivenChat, GivenEmbeddings
from recollect.memory.values.text import MOST_MESSAGE_CHARACTERS, MOST_REPLY_CHARACTERS

Scoped = Literal["auto", "thread", "user"]
"""Where a turn searches: its thread, all of the user's memory, or that with the thread's hits first."""
TimeUse = Literal["boost", "filter", "ignore"]
"""The effect of a time that the query names: raise what was said then, leave all else out, or none."""
Coverage = Literal["auto", "on", "off"]
"""Whether hits cover a period, or a subject over time, in place of the best few; auto: where the query asks for it."""
QueryPrecision = Literal["int8", "float32"]
"""The weights by which a local embedding model reads queries: a copy of 8-bit numbers, or its own."""
IN_MEMORY = Path(":memory:")
"""The value of `data_dir` that stands for a private temporary folder."""
_PATHS = (
    *("data_dir", "embedding_model_path", "reranker_path", "extraction_prompt_file", "extraction_schema_file"),
    "google_application_credentials",
)
_FIRST_CALLER = 5


@dataclass(frozen=True)
class MemoryConfig:
    """How a memory is stored, searched and learned.

    Unset URLs choose the embedded backends in `data_dir`; neither key nor base URL chooses the built-in offline models.
    Budgets are in tokens (see `values/tokens.py`), times in seconds. Paths may be texts; `data_dir=":memory:"` is a
    private temporary folder that is gone once the memory closes. `own_keys` are (provider, key), for roles that name
    that provider without a key. The last four names are those of an earlier library.
    """

    # Where the data are stored.
    data_dir: Path = Path("data")
    mongodb_url: str | None = field(default=None, repr=False)
    mongodb_database: str = "recollect"
    mongodb_prefix: str = ""
    mongodb_pool: int = 100
    qdrant_url: str | None = None
    qdrant_api_key: str | None = field(default=None, repr=False)
    qdrant_collection: str = "recollect"
    qdrant_prefer_grpc: bool = True
    qdrant_grpc_port: int = 6334
    qdrant_shards: int | None = None
    qdrant_replicas: int | None = None
    qdrant_write_consistency: int | None = None
    qdrant_on_disk: bool = False
    qdrant_quantization: Literal["scalar", "binary"] | None = None

    # Which models it uses. A role that names no provider of its own follows the chat's.
    provider: str | None = None
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    extraction_provider: str | None = None
    extraction_base_url: str | None = None
    extraction_api_key: str | None = field(default=None, repr=False)
    embedding_provider: str | None = None
    embedding_base_url: str | None = None
    embedding_api_key: str | None = field(default=None, repr=False)
    own_keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    chat_model: str | None = None
    extraction_model: str | None = None
    embedding_model: str | None = None
    embedding_dimensions: int | None = None
    embedder: str | None = None
    embedding_model_path: Path | None = None
    embedding_query_precision: QueryPrecision = "int8"
    reranker: str | None = None
    reranker_path: Path | None = None
    chat_timeout_seconds: float = 60.0
    embedding_timeout_seconds: float = 20.0
    max_reply_characters: int = MOST_REPLY_CHARACTERS

    # Accounts at Azure, AWS and Google Cloud, by the names that these use.
    azure_openai_endpoint: str | None = None
    azure_openai_api_version: str | None = None
    openai_api_version: str | None = None
    azure_openai_ad_token: str | None = field(default=None, repr=False)
    aws_region: str | None = None
    aws_access_key_id: str | None = field(default=None, repr=False)
    aws_secret_access_key: str | None = field(default=None, repr=False)
    aws_session_token: str | None = field(default=None, repr=False)
    aws_profile: str | None = None
    google_cloud_project: str | None = None
    google_cloud_location: str = "us-central1"
    google_application_credentials: Path | None = None

    # How long a message may be, and how much of it the prompt shows.
    max_message_characters: int = MOST_MESSAGE_CHARACTERS
    message_tokens: int = 50_000

    # Recall.
    window: int = 10
    window_tokens: int = 4_000
    facts_tokens: int = 1_000
    top_k: int = 5
    score_threshold: float | None = None
    scope: Scoped = "auto"
    scope_margin: float = 0.1
    recency_weight: float | None = None
    mmr_lambda: float | None = None
    time: TimeUse = "boost"
    timezone: str = "UTC"
    fallback_recent: bool = False
    coverage: Coverage = "auto"
    filter_keys: str = ""
    recall_tokens: int = 1_500
    recall_timeout_seconds: float = 5.0

    # Learning. `extraction_model` may name several, separated by commas, in order of preference.
    extraction_prompt_file: Path | None = None
    extraction_schema_file: Path | None = None
    duplicate_similarity: float = 0.9
    learn_every: int = 1
    learn_idle_seconds: float = 0.0
    review: Literal["off", "sensitive", "all"] = "off"
    unproven: Literal["review", "refuse", "allow"] = "review"
    review_tools: Literal["untrusted", "off", "all"] = "untrusted"
    sensitive_tags: tuple[str, ...] = ("health", "religion", "politics", "sexuality", "finance")
    summary_every: int = 10
    summary_tokens: int = 500
    archive_tokens: int = 0

    # Retention; 0 sets no bound.
    fact_retention_days: float = 0.0
    episode_retention_days: float = 0.0
    max_facts_per_user: int = 0
    max_episodes_per_user: int = 0
    index_vacuum_seconds: float = 3_600.0

    # How large a document may be.
    max_document_pages: int = 500
    max_document_characters: int = 5_000_000
    max_unpacked_mb: int = 100

    # How much bulk work (imports, files, archives) is done at a time.
    bulk_workers: int = 2
    import_seconds: float = 1_800.0
    import_answer_seconds: float = 60.0

    # Timeouts, concurrency and intervals.
    memory_wait_seconds: float = 30.0
    thread_wait_seconds: float = 30.0
    shutdown_seconds: float = 10.0
    update_concurrency: int = 32
    sweep_seconds: float = 5.0
    worker: Literal["on", "off", "only"] = "on"

    # Objects of a program: they count before the names above.
    given_embeddings: GivenEmbeddings | None = field(default=None, repr=False)
    given_chat: GivenChat | None = field(default=None, repr=False)

    mongo_uri: InitVar[str | None] = None
    db_name: InitVar[str | None] = None
    short_term_window: InitVar[int | None] = None
    embeddings: InitVar[Any] = None

    def __post_init__(
        self, mongo_uri: str | None, db_name: str | None, short_term_window: int | None, embeddings: Any
    ) -> None:
        """Move values of old names to the new ones, which win where both are given, and make paths of texts."""
        self._rename("mongo_uri", mongo_uri, "mongodb_url")
        self._rename("db_name", db_name, "mongodb_database")
        self._rename("short_term_window", short_term_window, "window")
        if embeddings is None or isinstance(embeddings, str):
            self._rename("embeddings", embeddings, "embedding_model")
        else:
            given = GivenEmbeddings(embeddings, setting="embeddings (or embedding_model, a name)")
            _warn("embeddings", "embedding_model", level=_FIRST_CALLER - 1)
            if self.embedding_model is None:
                object.__setattr__(self, "given_embeddings", given)
        for name in _PATHS:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, Path(value))

    def _rename(self, old: str, value: object, new: str) -> None:
        if value is None:
            return
        _warn(old, new)
        if getattr(self, new) == getattr(type(self), new, None):
            object.__setattr__(self, new, value)

    @property
    def names_provider(self) -> bool:
        """Whether the chat has a provider; without one the built-in offline models answer."""
        return bool(self.provider or self.api_key or self.base_url)

    def replace(self, **changes: Any) -> "MemoryConfig":
        """Return a copy with `changes`."""
        return _replace(self, **changes)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the fields' names, which are also those of the settings that fill them."""
        return tuple(item.name for item in fields(cls))


def _warn(old: str, new: str, *, level: int = _FIRST_CALLER) -> None:
    text = f"MemoryConfig({old}=…) is deprecated; use {new}"
    warnings.warn(text, DeprecationWarning, stacklevel=level)
