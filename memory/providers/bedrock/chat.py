"""Opens the chat models of Amazon Bedrock, through LangChain's `ChatBedrockConverse`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from langchain_aws import ChatBedrockConverse
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables.config import run_in_executor
from pydantic import Field
from typing_extensions import override

from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.providers.asked_chat import AskedChat, Provider
from recollect.memory.providers.bedrock.client import Bedrock, open_bedrock
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.langchain_chat import LangChainAsking, NativeDialect
from recollect.memory.providers.native_ping import ping_address
from recollect.memory.values.frozen import frozen

_FIELDS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
}


class ThreadedConverse(ChatBedrockConverse):
    """ChatBedrockConverse that waits in threads of its own: the event loop's serve every route."""

    threads: ThreadPoolExecutor = Field(exclude=True)

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await run_in_executor(self.threads, self._generate, messages, stop, None, **kwargs)

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        chunks = self._stream(messages, stop, None, **kwargs)
        while True:
            chunk = await run_in_executor(self.threads, next, chunks, None)
            if chunk is None:
                return
            yield chunk


@asynccontextmanager
async def open_bedrock_chat(
    source: Endpoint, *, model: str, model_setting: str, timeout_seconds: float
) -> AsyncGenerator[ChatModel]:
    """Open the chat model `model` of Bedrock. `model_setting` is the setting that errors name.

    Raises:
        ConfigurationError: AWS's settings are wrong.
    """
    async with open_bedrock(source, timeout_seconds=timeout_seconds) as bedrock:
        chat = await asyncio.to_thread(_build, bedrock, model)
        yield AskedChat(
            LangChainAsking(chat, name=model, dialect=NativeDialect(json_options={}, fields=_FIELDS)),
            failures=Failures(source.key_setting, model_setting, source.address_setting),
            timeout_seconds=timeout_seconds,
            provider=_BedrockProvider(source, bedrock.address),
        )


def _build(bedrock: Bedrock, model: str) -> ThreadedConverse:
    return ThreadedConverse(model=model, client=bedrock.client, threads=bedrock.threads, **bedrock.options)


@frozen
class _BedrockProvider(Provider):
    source: Endpoint
    address: str

    @override
    async def ping(self) -> None:
        await ping_address(self.source, self.address)

    @override
    async def models(self, api_key: str | None) -> tuple[str, ...]:
        """Return none: the caller adds the configured model."""
        return ()
