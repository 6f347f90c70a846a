"""The service's settings: the only reader of the environment, and of a `.env` file in the working directory.

A setting's variable is its name in upper case. Those that `MemoryConfig` has too take their defaults from there.
"""

import functools
import io
import os
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from recollect.memory.providers.presets import PRESETS, preset
from recollect.memory.temporal.temporal import read_timezone
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.filtering.keys import read_filter_keys
from recollect.memory.values.mem_config import Coverage, MemoryConfig, QueryPrecision, Scoped, TimeUse
from recollect.memory.values.scope import ID_PATTERN

_DEFAULT = MemoryConfig()
OPENAI = PRESETS["openai"]

OBJECT_PATTERN = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
_RECALL = (
    *("window", "top_k", "score_threshold", "scope", "scope_margin", "recency_weight", "mmr_lambda"),
    *("time", "timezone", "fallback_recent", "coverage", "filter_keys"),
)
"""The fields of `MemoryConfig` whose settings begin with MEMORY_."""

_TRACING = ("TRACING_V2", "TRACING")
"""The ends of the names of LangSmith's variables, the one that counts first."""

Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
Days = Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Cosine = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=0, le=1_000_000)]


class Settings(BaseSettings):
    """Every setting, with its default and what it does."""

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True)

    # Where it listens.
    host: str = Field("127.0.0.1", description="Address to listen on; others than loopback need AUTH.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    allow_insecure: bool = Field(
        default=False, description="With AUTH=none: listen on any address although nobody proves who they are."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Further names the service is called by, separated by commas (Host and Origin checks)."
    )
    max_upload_mb: int = Field(
        20, ge=1, le=10_000, description="Most megabytes (1,000,000 bytes each) of one import or uploaded document."
    )
    max_connections: int = Field(
        1_000, ge=1, le=100_000, description="Most connections at once; beyond them only /health is answered."
    )
    max_message_characters: int = Field(
        _DEFAULT.max_message_characters,
        ge=1,
        le=10_000_000,
        description="Most characters of a message; a request's body may have 12 bytes for each, and 100,000.",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Web pages that may call from a browser, as https://host, separated by commas."
    )

    # Who may call.
    auth: Literal["none", "api_key", "jwt"] = Field(
        "none", description="Who may call: everybody on this machine, holders of keys (`recollect keys`), or of JWTs."
    )
    jwt_secret: SecretStr | None = Field(None, min_length=32, description="With AUTH=jwt: the tokens' shared secret.")
    jwt_jwks_url: str | None = Field(None, description="With AUTH=jwt: where the issuer's public keys are, instead.")
    jwt_algorithms: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Signatures that are accepted, separated by commas; unset: HS256, or RS256 and ES256 with JWKS.",
    )
    jwt_issuer: str | None = Field(None, description="The `iss` that tokens must have.")
    jwt_audience: str | None = Field(None, description="The `aud` that tokens must have.")
    jwt_user_claim: str = Field("sub", min_length=1, description="The claim that names the user.")
    jwt_admin_claim: str | None = Field(
        None, pattern=r"^[^:]+:.+$", description="The claim that makes an administrator, as name:value."
    )
    jwt_user_prefix_claim: str | None = Field(
        None, min_length=1, description="The claim whose value begins the ids of all users that a token acts for."
    )
    forward_api_key: bool = Field(
        default=False, description="With AUTH=none: the caller's bearer token under /v1 is the chat model's key."
    )
    default_user: str | None = Field(
        None, pattern=f"^{ID_PATTERN}$", description="With AUTH=none: the user of requests under /v1 that name nobody."
    )
    trust_frontend_headers: bool = Field(
        default=False, description="Read Open WebUI's headers of user and chat; only where nobody else can send them."
    )
    derive_threads: bool | None = Field(
        None,
        description="Find the thread of chat clients that name none by their history; unset: where DEFAULT_USER or "
        "TRUST_FRONTEND_HEADERS is set.",
    )
    rate_limit_per_minute: int = Field(
        0, ge=0, le=1_000_000, description="Requests a minute of one key or subject, else address; 0: no limit."
    )
    rate_limit_burst: int | None = Field(
        None, ge=1, le=1_000_000, description="How many of them may come at once; unset: as many as in a minute."
    )
    recollect_api_key: SecretStr | None = Field(None, description="The key that the terminal's `--url` sends.")

    # The inspector, in a browser.
    inspector: Literal["on", "off"] = Field("on", description="The pages at `/` that show what is remembered.")
    public_url: str | None = Field(
        None, description="Address that people see, as https://host; unset: the one that they came to."
    )
    session_minutes: int = Field(
        60, ge=1, le=1440, description="Minutes without an act after which somebody has to sign in again."
    )

    # What it says of itself.
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least level that is logged.")
    log_format: Literal["text", "json"] = Field("text", description="Log lines as text, or one JSON object each.")
    otel_exporter_otlp_endpoint: str | None = Field(
        None, description="Where OpenTelemetry traces go, over HTTP (such as http://localhost:4318); unset: nowhere."
    )

    # Where memory is kept.
    data_dir: Path = Field(
        _DEFAULT.data_dir,
        description="Folder of the embedded stores; one process at a time. `:memory:`: a private one, gone at exit.",
    )
    mongodb_url: SecretStr | None = Field(None, description="MongoDB for the documents; unset: SQLite in DATA_DIR.")
    mongodb_database: str = Field(_DEFAULT.mongodb_database, min_length=1, description="Its database.")
    mongodb_prefix: str = Field(
        _DEFAULT.mongodb_prefix,
        pattern=r"^[A-Za-z0-9_-]{0,40}$",
        description="How the names of its collections begin, beside those of another program; unset: not at all.",
    )
    mongodb_pool: int = Field(
        _DEFAULT.mongodb_pool, ge=1, le=10_000, description="Most connections of one process to it at once."
    )
    qdrant_url: str | None = Field(None, description="Qdrant server for the index; unset: the engine in DATA_DIR.")
    qdrant_api_key: SecretStr | None = Field(None, description="Its API key.")
    qdrant_collection: str = Field(
        _DEFAULT.qdrant_collection,
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="Base name of the collection; the embedder's fingerprint is added.",
    )
    qdrant_prefer_grpc: bool = Field(_DEFAULT.qdrant_prefer_grpc, description="Talk gRPC to Qdrant: half the latency.")
    qdrant_grpc_port: int = Field(_DEFAULT.qdrant_grpc_port, ge=1, le=65535, description="Qdrant's gRPC port.")
    qdrant_shards: int | None = Field(
        None, ge=1, le=1_000, description="Shards of a new collection; unset: the server's default."
    )
    qdrant_replicas: int | None = Field(
        None, ge=1, le=100, description="Copies of each shard of a new collection; unset: the server's default."
    )
    qdrant_write_consistency: int | None = Field(
        None, ge=1, le=100, description="Copies that a write waits for; unset: the server's default."
    )
    qdrant_on_disk: bool = Field(
        _DEFAULT.qdrant_on_disk, description="Keep whole vectors and payloads on Qdrant's disk, not in its memory."
    )
    qdrant_quantization: Literal["scalar", "binary"] | None = Field(
        None,
        description="Keep short vectors in memory, `scalar` (a byte a number) or `binary` (a bit); hits are rescored.",
    )

    # Models.
    provider: str | None = Field(None, description="A preset: openai, groq, ollama, anthropic, … (see README).")
    openai_api_key: SecretStr | None = Field(None, description="Key for OpenAI or the server at OPENAI_BASE_URL.")
    openai_base_url: str | None = Field(None, description="An OpenAI-compatible server's address, ending in /v1.")
    chat_model: str | None = Field(None, description="Model that answers.")
    extraction_model: str | None = Field(
        None,
        description="Models that extract facts, separated by commas, in order of preference; unset: CHAT_MODEL.",
    )
    extraction_provider: str | None = Field(None, description="The preset that extracts facts; unset: the chat's.")
    extraction_base_url: str | None = Field(
        None, description="Its address; alone it means an OpenAI-compatible server."
    )
    extraction_api_key: SecretStr | None = Field(None, description="Its key; unset: that provider's own.")
    embedding_model: str | None = Field(
        None, description="Model that embeds; `lexical` is built in, `fastembed:NAME` runs locally (extra `local`)."
    )
    embedding_provider: str | None = Field(
        None, description="The preset that embeds; unset: the chat's, where that has a default (docs/models.md)."
    )
    embedding_base_url: str | None = Field(None, description="Its address; alone it means an OpenAI-compatible server.")
    embedding_api_key: SecretStr | None = Field(None, description="Its key; unset: that provider's own.")
    embedder: str | None = Field(
        None,
        pattern=OBJECT_PATTERN,
        description="Your own embedder, as package.module:object, before all EMBEDDING_ settings.",
    )
    embedding_dimensions: int | None = Field(None, ge=1, le=65_536, description="Length of its vectors.")
    embedding_model_path: Path | None = Field(None, description="Folder of a local model's files for `fastembed:NAME`.")
    embedding_query_precision: QueryPrecision = Field(
        _DEFAULT.embedding_query_precision,
        description="Weights by which a local model reads queries: a copy in 8 bits, in the user's cache, or its own.",
    )
    reranker: str | None = Field(
        None,
        description="Local model that judges a search's best hits again: `fastembed:NAME` (extra `local`).",
    )
    reranker_path: Path | None = Field(
        None, description="Folder of its files; alone it means Xenova/ms-marco-MiniLM-L-6-v2."
    )
    chat_timeout_seconds: Seconds = Field(_DEFAULT.chat_timeout_seconds, description="Longest wait for one answer.")
    embedding_timeout_seconds: Seconds = Field(
        _DEFAULT.embedding_timeout_seconds, description="Longest wait for one embedding call."
    )
    max_reply_characters: int = Field(
        _DEFAULT.max_reply_characters,
        ge=1,
        le=1_000_000,
        description="Most characters of a reply; a longer one is 502 model_unavailable.",
    )
    azure_openai_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=azure.")
    azure_openai_ad_token: SecretStr | None = Field(
        None, description="An Entra token instead; `default`: those of this machine's identity (extra `azure`)."
    )
    azure_openai_endpoint: str | None = Field(None, description="The resource: https://NAME.openai.azure.com.")
    azure_openai_api_version: str | None = Field(None, description="Version of its API, such as 2024-10-21.")
    openai_api_version: str | None = Field(None, description="Another name of AZURE_OPENAI_API_VERSION.")
    aws_region: str | None = Field(None, description="Region for PROVIDER=bedrock, such as us-east-1.")
    aws_bearer_token_bedrock: SecretStr | None = Field(None, description="Bedrock's API key.")
    aws_access_key_id: SecretStr | None = Field(
        None, description="Access key instead; unset: AWS_PROFILE, else what AWS's client finds."
    )
    aws_secret_access_key: SecretStr | None = Field(None, description="The access key's secret.")
    aws_session_token: SecretStr | None = Field(None, description="Its session's token, for temporary ones.")
    aws_profile: str | None = Field(None, description="Profile of AWS's own files.")
    google_cloud_project: str | None = Field(None, description="Project for PROVIDER=vertex.")
    google_cloud_location: str = Field(
        _DEFAULT.google_cloud_location, min_length=1, description="Location for PROVIDER=vertex."
    )
    google_application_credentials: Path | None = Field(
        None, description="File of its credentials; unset: what Google's client finds."
    )
    anthropic_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=anthropic.")
    cerebras_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=cerebras.")
    deepinfra_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=deepinfra.")
    deepseek_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=deepseek.")
    fireworks_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=fireworks.")
    google_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=gemini.")
    groq_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=groq.")
    hf_token: SecretStr | None = Field(None, description="Key for PROVIDER=huggingface.")
    mistral_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=mistral.")
    nvidia_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=nvidia.")
    openrouter_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=openrouter.")
    perplexity_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=perplexity.")
    sambanova_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=sambanova.")
    together_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=together.")
    xai_api_key: SecretStr | None = Field(None, description="Key for PROVIDER=xai.")

    # The agent.
    agent: str | None = Field(
        None,
        pattern=OBJECT_PATTERN,
        description="Your own agent node, as package.module:attribute; unset: the built-in one.",
    )
    system_prompt_file: Path | None = Field(None, description="File that replaces the assistant's own instructions.")
    agent_tools: bool = Field(default=True, description="Offer the agent its memory tools.")
    allow_model_choice: bool = Field(
        default=False, description="Let requests choose `model`, `instructions` and `parameters` of the agent's model."
    )

    # What a turn recalls, where the request does not say.
    memory_window: int = Field(_DEFAULT.window, ge=0, le=50, description="Turns of the thread given verbatim.")
    memory_top_k: int = Field(_DEFAULT.top_k, ge=0, le=50, description="Most memories that a search gives.")
    memory_score_threshold: Cosine | None = Field(
        _DEFAULT.score_threshold,
        description="Least cosine similarity of a recalled memory; unset: 0.1, or a word in common with the query.",
    )
    memory_scope: Scoped = Field(
        _DEFAULT.scope,
        description="What a turn searches: `thread`, all of the `user`, or that with the thread's hits first (`auto`).",
    )
    memory_scope_margin: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = Field(
        _DEFAULT.scope_margin,
        description="With MEMORY_SCOPE=auto: how much more another thread's hit must score to take a place.",
    )
    memory_recency_weight: Share | None = Field(
        _DEFAULT.recency_weight, description="Share of recency in a hit's score, 0 to 1; unset: none."
    )
    memory_mmr_lambda: Share | None = Field(
        _DEFAULT.mmr_lambda, description="MMR's trade-off: 1 relevance alone, 0 variety alone; unset: no MMR."
    )
    memory_time: TimeUse = Field(
        _DEFAULT.time,
        description="What a time in the text does: `boost` what was said then, `filter` the rest out, `ignore` it.",
    )
    memory_timezone: str = Field(
        _DEFAULT.timezone, description="Where the users' days begin, as an IANA name such as Europe/Berlin."
    )
    memory_fallback_recent: bool = Field(
        default=_DEFAULT.fallback_recent, description="Where nothing is relevant, give the newest few memories."
    )
    memory_coverage: Coverage = Field(
        _DEFAULT.coverage,
        description="Cover a period, or a subject over time: where the text asks for it (`auto`), always, or never.",
    )
    memory_filter_keys: str = Field(
        _DEFAULT.filter_keys,
        description="Metadata keys indexed for filters, at most 16, such as project:keyword,priority:integer.",
    )
    message_tokens: Annotated[int, Field(ge=50, le=10_000_000)] = Field(
        _DEFAULT.message_tokens, description="Token budget of the message itself; in the prompt a longer one is cut."
    )
    window_tokens: Tokens = Field(_DEFAULT.window_tokens, description="Token budget of the window.")
    facts_tokens: Tokens = Field(_DEFAULT.facts_tokens, description="Token budget of the facts.")
    recall_tokens: Tokens = Field(_DEFAULT.recall_tokens, description="Token budget of what the search found.")
    recall_timeout_seconds: Seconds = Field(
        _DEFAULT.recall_timeout_seconds, description="Longest wait for each part of memory before a reply goes without."
    )

    # What it learns.
    extraction_prompt_file: Path | None = Field(
        None, description="File that replaces the extraction's instructions; {message}, {known} and {today} are filled."
    )
    extraction_schema_file: Path | None = Field(
        None, description="JSON schema whose properties are the only keys that are learned."
    )
    duplicate_similarity: float = Field(
        _DEFAULT.duplicate_similarity,
        ge=-1,
        le=1,
        description="Known facts at least so similar to a message, or a sentence of it, are shown to the extraction.",
    )
    learn_every: int = Field(
        _DEFAULT.learn_every, ge=1, le=50, description="Turns of a thread that are learned from in one call."
    )
    learn_idle_seconds: float = Field(
        _DEFAULT.learn_idle_seconds,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="With LEARN_EVERY: learn what waits after so long without a turn; 0: no idle trigger.",
    )
    review: Literal["off", "sensitive", "all"] = Field(
        _DEFAULT.review, description="Which learned facts wait for a person's approval."
    )
    unproven: Literal["review", "refuse", "allow"] = Field(
        _DEFAULT.unproven,
        description="What becomes of a fact that its quote does not carry: it waits for its owner, or is refused.",
    )
    review_tools: Literal["untrusted", "off", "all"] = Field(
        _DEFAULT.review_tools,
        description="Which proposals of `remember_fact` wait: those beside documents and the like, none, or all.",
    )
    sensitive_tags: str = Field(
        ",".join(_DEFAULT.sensitive_tags),
        description="Tags of facts that REVIEW=sensitive holds back, separated by commas.",
    )
    summary_every: int = Field(
        _DEFAULT.summary_every,
        ge=0,
        le=1000,
        description="Turns that leave the window before the thread's summary takes them in; 0: no summaries.",
    )
    summary_tokens: Annotated[int, Field(ge=50, le=10_000)] = Field(
        _DEFAULT.summary_tokens, description="Token budget of a summary."
    )
    archive_tokens: int = Field(
        _DEFAULT.archive_tokens, ge=0, description="Tokens after which a thread is archived; 0: never by itself."
    )

    # What it keeps.
    fact_retention_days: Days = Field(
        _DEFAULT.fact_retention_days, description="Facts not confirmed for so long are removed; 0: kept."
    )
    episode_retention_days: Days = Field(
        _DEFAULT.episode_retention_days, description="Turns older than this are removed; 0: kept."
    )
    max_facts_per_user: int = Field(
        _DEFAULT.max_facts_per_user, ge=0, description="Most facts of a user; the least important go. 0: no limit."
    )
    max_episodes_per_user: int = Field(
        _DEFAULT.max_episodes_per_user, ge=0, description="Most messages of a user; the oldest go. 0: no limit."
    )
    index_vacuum_seconds: float = Field(
        _DEFAULT.index_vacuum_seconds,
        gt=0,
        le=31_536_000,
        allow_inf_nan=False,
        description="Time in which an embedded index's files lose deleted text; they are rewritten at most once in it.",
    )

    max_document_pages: int = Field(
        _DEFAULT.max_document_pages, ge=1, le=100_000, description="Most pages of a document."
    )
    max_document_characters: int = Field(
        _DEFAULT.max_document_characters, ge=1, le=100_000_000, description="Most characters of a document's text."
    )
    max_unpacked_mb: int = Field(
        _DEFAULT.max_unpacked_mb, ge=1, le=10_000, description="Most megabytes that a compressed file may unpack to."
    )

    bulk_workers: int = Field(
        _DEFAULT.bulk_workers,
        ge=1,
        le=64,
        description="Threads for imports, files and archives; beyond 16 more of them the answer is 503.",
    )

    # How it waits.
    import_seconds: Seconds = Field(
        _DEFAULT.import_seconds, description="Longest import; then it ends with 503, and what came stays."
    )
    import_answer_seconds: Seconds = Field(
        _DEFAULT.import_answer_seconds,
        description="How long the answer to an import waits for its end; then it is 202 with an id to ask by.",
    )
    memory_wait_seconds: Seconds = Field(
        _DEFAULT.memory_wait_seconds, description="Longest wait of `wait_for_memory` before it says pending."
    )
    thread_wait_seconds: Seconds = Field(
        _DEFAULT.thread_wait_seconds, description="Longest wait for a busy thread before 409 thread_busy."
    )
    shutdown_seconds: Seconds = Field(
        _DEFAULT.shutdown_seconds, description="Time to finish turns and updates when stopping."
    )
    update_concurrency: int = Field(
        _DEFAULT.update_concurrency, ge=1, le=1000, description="Update steps of one kind that run at the same time."
    )
    sweep_seconds: Seconds = Field(
        _DEFAULT.sweep_seconds,
        description="How often to look for what another process left, and for what is past its bounds.",
    )
    worker: Literal["on", "off"] = Field(
        "on", description="Whether this process works updates off; `off` needs servers, and `recollect worker` beside."
    )

    @field_validator("allowed_hosts", "cors_origins", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return _parts(value) if isinstance(value, str) else value

    @field_validator("memory_timezone")
    @classmethod
    def _check_timezone(cls, name: str) -> str:
        read_timezone(name)
        return name

    @field_validator("memory_filter_keys")
    @classmethod
    def _check_filter_keys(cls, text: str) -> str:
        read_filter_keys(text)
        return text

    @field_validator("jwt_algorithms", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @property
    def derives_threads(self) -> bool:
        """Tell whether the thread of a chat client that names none is found by its history."""
        if self.derive_threads is not None:
            return self.derive_threads
        return self.default_user is not None or self.trust_frontend_headers

    def memory(self) -> MemoryConfig:
        """What the memory is told.

        Raises:
            ConfigurationError: PROVIDER is unknown, or takes no forwarded keys.
        """
        if self.forward_api_key and self.provider and preset(self.provider).base_url is None:
            raise ConfigurationError(
                f"FORWARD_API_KEY works with providers that speak OpenAI's protocol, which {self.provider} does not: "
                "unset one of them."
            )
        own = {name: getattr(self, name) for name in MemoryConfig.names() if name in type(self).model_fields}
        plain: dict[str, Any] = {name: _plain(value) for name, value in own.items()}
        plain["sensitive_tags"] = _parts(self.sensitive_tags)
        return MemoryConfig(
            **plain,
            api_key=_plain(self._provider_key()),
            base_url=self.openai_base_url,
            own_keys=self._own_keys(),
            **{name: getattr(self, f"memory_{name}") for name in _RECALL},
        )

    def secrets(self) -> list[str]:
        """The values of all settings that are secret, for the log to leave out."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]

    def _provider_key(self) -> SecretStr | None:
        """Return the chat's key: its provider's own, or OPENAI_API_KEY for the server at OPENAI_BASE_URL."""
        variable = preset(self.provider).key_variable if self.provider else "OPENAI_API_KEY"
        if variable is None:
            return self.openai_api_key if self.openai_base_url else None
        return self._of_variable(variable)

    def _own_keys(self) -> tuple[tuple[str, str], ...]:
        """Return the keys of all providers; OPENAI_API_KEY is not OpenAI's where OPENAI_BASE_URL names its server."""
        found = {name: self._of_variable(item.key_variable) for name, item in PRESETS.items() if item.key_variable}
        has_own_server = self.openai_base_url is not None and self.openai_base_url.rstrip("/") != OPENAI.base_url
        if has_own_server and (self.provider is None or preset(self.provider).key_variable in {None, "OPENAI_API_KEY"}):
            found["openai"] = None
        return tuple((name, key.get_secret_value()) for name, key in found.items() if key is not None)

    def _of_variable(self, variable: str) -> SecretStr | None:
        key: SecretStr | None = getattr(self, variable.lower())
        return key


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip().lower() for part in text.split(",") if part.strip())


def _plain(value: Any) -> Any:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def load_settings(**overrides: Any) -> Settings:
    """The settings from the environment; `overrides` (from the command line) win, None among them counts as unset.

    Raises:
        ConfigurationError: names each setting that is wrong, without its value.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        wrong = (f"{'.'.join(map(str, item['loc'])).upper()}: {item['msg']}" for item in error.errors())
        raise ConfigurationError(f"Wrong settings: {'; '.join(wrong)}.") from None


def read_file(path: Path) -> dict[str, str | None]:
    """The names and values in a file such as `.env`, as they are written.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        return dotenv_values(stream=io.StringIO(path.read_text(encoding="utf-8-sig")), interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read ({type(error).__name__}); name a file such as .env.") from None


@functools.cache
def current_settings() -> Settings:
    """The settings of this process, read once."""
    return load_settings()


def is_traced_by_langsmith() -> bool:
    """Tell whether LangSmith's own variables switch its tracing on; they are no settings of the service."""
    found = (os.environ.get(f"{owner}_{name}", "").strip() for name in _TRACING for owner in ("LANGSMITH", "LANGCHAIN"))
    return next(filter(None, found), "") == "true"
