"""Names providers as OpenTelemetry's GenAI conventions do (`gen_ai.provider.name`). Pure."""

from recollect.memory.providers.endpoint import FASTEMBED, Endpoint

OWN = "recollect"
"""The built-in models, which no provider serves."""
GIVEN = "other"
"""A model that a program gave as an object."""
_NAMES = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}


def told_name(source: Endpoint | None) -> str:
    """Return the conventions' name of a provider; a compatible server without a preset speaks OpenAI's protocol."""
    if source is None:
        return OWN
    return _NAMES.get(source.provider, source.provider or "openai")


def embedders_name(model: str, source: Endpoint | None) -> str:
    """Return the conventions' name of who embeds with `model`: this process, or the provider."""
    if model.startswith(FASTEMBED):
        return FASTEMBED.removesuffix(":")
    return OWN if model.startswith("lexical") else told_name(source)
