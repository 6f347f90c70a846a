"""Names a provider as it is asked: its address, its key, and the settings that errors name; and its models' names."""

from dataclasses import field

from recollect.memory.providers.accounts import Account
from recollect.memory.providers.presets import PRESETS, Preset, Protocol
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import MemoryConfig

NO_KEY = "none-needed"
"""Stands for a key where none is needed."""
OPENAI_BASE_URL = "https://api.openai.com/v1"
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


@frozen
class Endpoint:
    """A provider as the configuration names it; `provider` is "" for a server without a preset.

    `api_key` is a placeholder for servers that need none. `base_url` has no slash at its end; it is "" where the
    provider's own client knows its address. `account` is what Azure, AWS or Google Cloud ask for beside a key.
    """

    provider: str
    base_url: str
    key_setting: str
    api_key: str = field(repr=False)
    protocol: Protocol = "openai"
    address_setting: str = "OPENAI_BASE_URL"
    account: Account = None

    @property
    def has_key(self) -> bool:
        """Tell whether a key is known."""
        return self.api_key != NO_KEY

    @property
    def is_openai(self) -> bool:
        """Tell whether the provider is OpenAI itself and not a compatible server."""
        return self.protocol == "openai" and self.base_url == OPENAI_BASE_URL

    @property
    def defaults(self) -> Preset | None:
        """Return the preset whose defaults count here: none for a compatible server at an address of its own."""
        found = PRESETS.get(self.provider)
        if found is None or (self.protocol == "openai" and self.base_url != found.base_url):
            return None
        return found

    @property
    def embeds(self) -> bool:
        """Tell whether an EMBEDDING_MODEL may be asked of it without an EMBEDDING_PROVIDER."""
        return self.defaults is None or self.defaults.embeds


def chat_model_name(config: MemoryConfig, source: Endpoint) -> str:
    """Return CHAT_MODEL, or the provider's default.

    Raises:
        ConfigurationError: it is unset and the provider has no default.
    """
    default = source.defaults.chat_model if source.defaults else None
    if config.chat_model or default:
        return config.chat_model or default or ""
    raise ConfigurationError("CHAT_MODEL is missing: name the model that this provider or server should answer with.")


def extraction_model_names(config: MemoryConfig, source: Endpoint) -> tuple[list[str], str]:
    """Return the extraction models in order of preference, and the setting that names them.

    They are those of EXTRACTION_MODEL, a list separated by commas, else the chat model, else the default of a provider
    that is the extraction's own.

    Raises:
        ConfigurationError: there is none.
    """
    names = [name.strip() for name in (config.extraction_model or "").split(",") if name.strip()]
    if names:
        return list(dict.fromkeys(names)), "EXTRACTION_MODEL"
    if not (config.extraction_provider or config.extraction_base_url):
        return [chat_model_name(config, source)], "CHAT_MODEL"
    if source.defaults and source.defaults.chat_model:
        return [source.defaults.chat_model], "EXTRACTION_MODEL"
    raise ConfigurationError(
        "EXTRACTION_MODEL is missing: name the model of EXTRACTION_PROVIDER or EXTRACTION_BASE_URL that extracts facts."
    )


def embedding_model_name(config: MemoryConfig, source: Endpoint | None) -> str:
    """Return EMBEDDING_MODEL, else the default of `source`, which embeds; else "lexical".

    Raises:
        ConfigurationError: it names a remote model and nothing serves it, or an own provider has no default.
    """
    name = config.embedding_model
    has_own = bool(config.embedding_provider or config.embedding_base_url)
    if name and (name == LEXICAL or name.startswith(FASTEMBED)):
        return name
    if not name:
        default = source.defaults.embedding_model if source and source.defaults else None
        if has_own and default is None:
            raise ConfigurationError(
                "EMBEDDING_MODEL is missing: name the model of EMBEDDING_PROVIDER or EMBEDDING_BASE_URL that embeds."
            )
        return default or LEXICAL
    if source is None or source.protocol == "anthropic" or not (has_own or source.embeds):
        raise ConfigurationError(
            "EMBEDDING_MODEL names a remote model, and the chat's provider serves none: name its provider in "
            "EMBEDDING_PROVIDER, or an OpenAI-compatible server in EMBEDDING_BASE_URL; without one it can be "
            f"{LEXICAL} or {FASTEMBED}NAME."
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
