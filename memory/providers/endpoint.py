"""Reads from a configuration which provider to ask: its address, its key, and the settings that errors name."""

from dataclasses import dataclass, field

from recollect.memory.providers.presets import preset
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig

OPENAI_BASE_URL = "https://api.openai.com/v1"
DEFAULT_CHAT_MODEL = "gpt-4.1-mini"
"""CHAT_MODEL where it is unset and the provider is OpenAI itself."""
DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"
"""EMBEDDING_MODEL where it is unset and the provider is OpenAI itself."""
LEXICAL = "lexical"
"""EMBEDDING_MODEL for the built-in embedder."""
FASTEMBED = "fastembed:"
"""How EMBEDDING_MODEL and RERANKER begin for a local model."""
DEFAULT_RERANKER = "fastembed:Xenova/ms-marco-MiniLM-L-6-v2"
"""RERANKER where it is unset and RERANKER_PATH holds a model."""
KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1_536,
    "text-embedding-3-large": 3_072,
    "text-embedding-ada-002": 1_536,
}

_NATIVE_BASES = {
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
_NO_KEY = "none-needed"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A provider as the configuration names it.

    `api_key` is a placeholder for servers that need none. `native` providers are served by LangChain's own clients,
    all others speak OpenAI's protocol at `base_url` (which has no slash at its end).
    """

    provider: str
    base_url: str
    key_setting: str
    api_key: str = field(repr=False)

    @property
    def native(self) -> bool:
        """Tell whether the provider has a protocol other than OpenAI's."""
        return self.provider in _NATIVE_BASES

    @property
    def is_openai(self) -> bool:
        """Tell whether the provider is OpenAI itself and not a compatible server."""
        return not self.native and self.base_url == OPENAI_BASE_URL


def endpoint(config: MemoryConfig) -> Endpoint | None:
    """Return the provider to ask, or None for the built-in offline models (no provider, key or base URL).

    Raises:
        ConfigurationError: an unknown provider, a base URL that is none, or a missing key.
    """
    if not (config.provider or config.api_key or config.base_url):
        return None
    name = (config.provider or "openai").strip().lower()
    chosen = preset(name)
    own_base = chosen.base_url or _NATIVE_BASES[name]
    base_url = (config.base_url or own_base).strip().rstrip("/")
    if not base_url.startswith(("http://", "https://")):
        raise ConfigurationError("OPENAI_BASE_URL must start with http:// or https://.")
    key_setting = chosen.key_variable or "OPENAI_API_KEY"
    if not config.api_key and chosen.key_variable and base_url == own_base:
        raise ConfigurationError(f"{key_setting} is missing: the provider {name} needs a key.")
    return Endpoint(provider=name, base_url=base_url, key_setting=key_setting, api_key=config.api_key or _NO_KEY)


def chat_model_name(config: MemoryConfig, source: Endpoint) -> str:
    """Return CHAT_MODEL, or OpenAI's default.

    Raises:
        ConfigurationError: it is unset and the provider is not OpenAI.
    """
    if config.chat_model:
        return config.chat_model
    if source.is_openai:
        return DEFAULT_CHAT_MODEL
    raise ConfigurationError("CHAT_MODEL is missing: name the model that this provider or server should answer with.")


def extraction_model_names(config: MemoryConfig, source: Endpoint) -> tuple[list[str], str]:
    """Return the extraction models in order of preference, and the setting that names them.

    They are those of EXTRACTION_MODEL, a list separated by commas, else the chat model.
    """
    names = [name.strip() for name in (config.extraction_model or "").split(",") if name.strip()]
    if names:
        return list(dict.fromkeys(names)), "EXTRACTION_MODEL"
    return [chat_model_name(config, source)], "CHAT_MODEL"


def embedding_model_name(config: MemoryConfig, source: Endpoint | None) -> str:
    """Return EMBEDDING_MODEL, else OpenAI's default with OpenAI itself, else "lexical".

    Raises:
        ConfigurationError: it names a remote model and nothing serves it.
    """
    name = config.embedding_model
    if not name:
        return DEFAULT_EMBEDDING_MODEL if source and source.is_openai else LEXICAL
    if name != LEXICAL and not name.startswith(FASTEMBED) and (source is None or source.native):
        raise ConfigurationError(
            "EMBEDDING_MODEL names a remote model, which needs an OpenAI-compatible server (OPENAI_API_KEY or "
            f"OPENAI_BASE_URL); without one it can be {LEXICAL} or {FASTEMBED}NAME."
        )
    return name


def reranker_name(config: MemoryConfig) -> str | None:
    """Return RERANKER without its prefix, else the default's name where RERANKER_PATH is set, else None.

    Raises:
        ConfigurationError: it is no local model; no other kind is supported.
    """
    name = config.reranker or (DEFAULT_RERANKER if config.reranker_path is not None else None)
    if name is None:
        return None
    if not name.startswith(FASTEMBED):
        raise ConfigurationError(f"RERANKER has to be a local model, such as {DEFAULT_RERANKER}.")
    return name.removeprefix(FASTEMBED)


def known_dimension(model: str, stated: int | None) -> int | None:
    """Return the vectors' length from `stated` or the table; None where only the model knows it."""
    return stated or KNOWN_DIMENSIONS.get(model)
