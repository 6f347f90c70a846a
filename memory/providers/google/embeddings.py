"""Opens the embedding models of Gemini and Vertex AI, through LangChain (extras `gemini`, `vertex`)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.accounts import GoogleAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.extras import imported
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.google.connections import own_connections
from recollect.memory.providers.google.credentials import vertex_options
from recollect.memory.providers.native_ping import ping_address
from recollect.memory.providers.remote_embedder import QueryingEmbedder

if TYPE_CHECKING:
    from langchain_google_genai import GoogleGenerativeAIEmbeddings


@asynccontextmanager
async def open_google_embedder(
    source: Endpoint, *, model: str, dimensions: int | None, timeout_seconds: float
) -> AsyncGenerator[Embedder]:
    """Open the embedding model `model`; `dimensions` is EMBEDDING_DIMENSIONS, which Google's models shorten to.

    Raises:
        ConfigurationError: the provider's package is not installed, or its credentials cannot be read.
    """
    embeddings = await asyncio.to_thread(_build, source, model, dimensions)
    async with AsyncExitStack() as opened:
        own_connections(embeddings.client, opened)
        yield QueryingEmbedder(
            embeddings,
            name=model,
            dimension=dimensions,
            failures=Failures(
                source.key_setting, "EMBEDDING_MODEL", source.address_setting, "EMBEDDING_TIMEOUT_SECONDS"
            ),
            timeout_seconds=timeout_seconds,
            ping=lambda: ping_address(source),
        )


def _build(source: Endpoint, model: str, dimensions: int | None) -> "GoogleGenerativeAIEmbeddings":
    imported("langchain_google_genai", f"PROVIDER={source.provider}", extra=source.provider)
    from langchain_google_genai import GoogleGenerativeAIEmbeddings

    options: dict[str, Any] = {"api_key": source.api_key, "vertexai": False}
    if isinstance(source.account, GoogleAccount):
        options = vertex_options(source.account)
    return GoogleGenerativeAIEmbeddings(
        model=model, base_url=source.base_url or None, output_dimensionality=dimensions, **options
    )
