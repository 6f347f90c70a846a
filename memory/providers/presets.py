"""Lists each PROVIDER: its base URL, the variable of its key, and its default models. It loads no library."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen

Protocol = Literal["openai", "azure", "anthropic", "gemini", "bedrock", "vertex"]
"""How a provider is spoken to: OpenAI's protocol, OpenAI's as Azure serves it, or one of its own."""


@frozen
class Preset:
    """A provider's OpenAI-compatible base URL (None: another client serves it) and its key's variable.

    `key_variable` is None for servers that need no key. `chat_model` and `embedding_model` are its defaults; None: it
    has none. `embeds` tells whether it is asked for an EMBEDDING_MODEL although no EMBEDDING_PROVIDER names it.
    """

    base_url: str | None
    key_variable: str | None
    protocol: Protocol = "openai"
    chat_model: str | None = None
    embedding_model: str | None = None
    embeds: bool = True


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "openai": Preset(
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            chat_model="gpt-4.1-mini",
            embedding_model="text-embedding-3-small",
        ),
        "anthropic": Preset(None, "ANTHROPIC_API_KEY", "anthropic", embeds=False),
        "gemini": Preset(None, "GOOGLE_API_KEY", "gemini", embedding_model="gemini-embedding-001"),
        "azure": Preset(None, "AZURE_OPENAI_API_KEY", "azure"),
        "bedrock": Preset(None, "AWS_BEARER_TOKEN_BEDROCK", "bedrock", embedding_model="amazon.titan-embed-text-v2:0"),
        "vertex": Preset(None, None, "vertex", embedding_model="gemini-embedding-001"),
        "cerebras": Preset("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", embeds=False),
        "deepinfra": Preset("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY", embedding_model="BAAI/bge-m3"),
        "deepseek": Preset("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", embeds=False),
        "fireworks": Preset(
            "https://api.fireworks.ai/inference/v1",
            "FIREWORKS_API_KEY",
            embedding_model="nomic-ai/nomic-embed-text-v1.5",
        ),
        "groq": Preset("https://api.groq.com/openai/v1", "GROQ_API_KEY", embeds=False),
        "huggingface": Preset("https://router.huggingface.co/v1", "HF_TOKEN", embeds=False),
        "mistral": Preset("https://api.mistral.ai/v1", "MISTRAL_API_KEY", embedding_model="mistral-embed"),
        "nvidia": Preset("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
        "openrouter": Preset(
            "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", embedding_model="openai/text-embedding-3-small"
        ),
        "perplexity": Preset("https://api.perplexity.ai", "PERPLEXITY_API_KEY", embeds=False),
        "sambanova": Preset("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
        "together": Preset("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        "xai": Preset("https://api.x.ai/v1", "XAI_API_KEY", embeds=False),
        "llamacpp": Preset("http://127.0.0.1:8080/v1", None),
        "lmstudio": Preset("http://127.0.0.1:1234/v1", None),
        "ollama": Preset("http://127.0.0.1:11434/v1", None),
        "vllm": Preset("http://127.0.0.1:8000/v1", None),
    }
)


def provider_name(name: str, setting: str = "PROVIDER") -> str:
    """Return the provider's name as the table has it; case and surrounding white space do not matter.

    Raises:
        ConfigurationError: the provider is unknown; the message names `setting` and lists the known ones.
    """
    found = name.strip().lower()
    if found not in PRESETS:
        raise ConfigurationError(f"{setting} is not one of: {', '.join(PRESETS)}.")
    return found


def preset(name: str, setting: str = "PROVIDER") -> Preset:
    """Return the provider's preset; see `provider_name`."""
    return PRESETS[provider_name(name, setting)]
