"""Opens the embedding models of Amazon Bedrock, through LangChain's `BedrockEmbeddings`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from langchain_aws import BedrockEmbeddings
from langchain_core.embeddings import Embeddings
from typing_extensions import override

from recollect.memory.ports.embedder import Embedder
from recollect.memory.providers.bedrock.client import Bedrock, open_bedrock
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.native_ping import ping_address
from recollect.memory.providers.remote_embedder import QueryingEmbedder
from recollect.memory.values.frozen import frozen


@frozen
class _Threaded(Embeddings):
    """BedrockEmbeddings that wait in threads of their own. Most models take one text in each request."""

    embeddings: BedrockEmbeddings
    bedrock: Bedrock

    @override
    def embed_query(self, text: str) -> list[float]:
        return self.embeddings.embed_query(text)

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.embeddings.embed_documents(texts)

    @override
    async def aembed_query(self, text: str) -> list[float]:
        return await self._run(self.embed_query, text)

    @override
    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        answers = await asyncio.gather(*(self._run(self.embed_documents, [text]) for text in texts))
        return [vector for vectors in answers for vector in vectors]

    async def _run(self, call: Any, given: object) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.bedrock.threads, call, given)


@asynccontextmanager
async def open_bedrock_embedder(
    source: Endpoint, *, model: str, dimensions: int | None, timeout_seconds: float
) -> AsyncGenerator[Embedder]:
    """Open the embedding model `model` of Bedrock; `dimensions` is EMBEDDING_DIMENSIONS.

    Raises:
        ConfigurationError: AWS's settings are wrong.
    """
    async with open_bedrock(source, timeout_seconds=timeout_seconds) as bedrock:
        embeddings = await asyncio.to_thread(
            BedrockEmbeddings, model_id=model, client=bedrock.client, dimensions=dimensions
        )
        yield QueryingEmbedder(
            _Threaded(embeddings, bedrock),
            name=model,
            dimension=dimensions,
            failures=Failures(
                source.key_setting, "EMBEDDING_MODEL", source.address_setting, "EMBEDDING_TIMEOUT_SECONDS"
            ),
            timeout_seconds=timeout_seconds,
            ping=lambda: ping_address(source, bedrock.address),
        )
