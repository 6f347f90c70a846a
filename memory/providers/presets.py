"""Lists the base URL of each PROVIDER and the variable of its key. Importing this table loads no library."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from recollect.memory.values.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Preset:
    """A provider's OpenAI-compatible base URL (None: LangChain's own client serves it) and its key's variable.

    `key_variable` is None for servers that need no key.
    """

    base_url: str | None
    key_variable: str | None


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "openai": Preset("https://api.openai.com/v1", "OPENAI_API_KEY"),
        "anthropic": Preset(None, "ANTHROPIC_API_KEY"),
        "gemini": Preset(None, "GOOGLE_API_KEY"),
        "cerebras": Preset("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
        "deepinfra": Preset("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
        "deepseek": Preset("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        "fireworks": Preset("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
        "groq": Preset("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        "huggingface": Preset("https://router.huggingface.co/v1", "HF_TOKEN"),
        "mistral": Preset("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        "nvidia": Preset("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
        "openrouter": Preset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        "perplexity": Preset("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
        "sambanova": Preset("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
        "together": Preset("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        "xai": Preset("https://api.x.ai/v1", "XAI_API_KEY"),
        "llamacpp": Preset("http://127.0.0.1:8080/v1", None),
        "lmstudio": Preset("http://127.0.0.1:1234/v1", None),
        "ollama": Preset("http://127.0.0.1:11434/v1", None),
        "vllm": Preset("http://127.0.0.1:8000/v1", None),
    }
)


def preset(name: str) -> Preset:
    """Return the provider's preset; case and surrounding white space do not matter.

    Raises:
        ConfigurationError: the provider is unknown; the message lists the known ones.
    """
    found = PRESETS.get(name.strip().lower())
    if found is None:
        raise ConfigurationError(f"PROVIDER is not one of: {', '.join(PRESETS)}.")
    return found
