"""Opens ChatOpenAI as the chat model of OpenAI or any server with its protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import openai
from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.language_models import LanguageModelInput
from langchain_core.outputs import ChatResult
from langchain_core.runnables import ensure_config
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from recollect.memory.ports.chat_model import ChatModel, ChatReply, ChatRequest
from recollect.memory.providers.chat_messages import RAW_ARGUMENTS, parsed_args
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.langchain_chat import CALLERS_KEY, LangChainChat, OpenAIDialect
from recollect.memory.providers.openai.client import open_client
from recollect.memory.providers.openai.plain_chat import chat_body, read_reply
from recollect.memory.providers.openai.plain_client import PlainClient, open_plain_client
from recollect.memory.providers.openai.provider import OpenAIProvider


class PlainChatOpenAI(ChatOpenAI):
    """ChatOpenAI that sends messages and tools unchanged, and accepts tool arguments that are no JSON object.

    OpenAI's SDK walks every value of the typed parameters before it sends them: with a window of 20 messages that took
    two thirds of the call's CPU. It leaves `extra_body` alone.
    """

    @override
    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        # LangChain types it only as "dict".
        whole = super()._get_request_payload(input_, stop=stop, **kwargs)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        payload = cast("dict[str, Any]", whole)
        plain = {name: payload.pop(name) for name in ("messages", "tools") if name in payload}
        key: SecretStr | None = payload.pop(CALLERS_KEY, None)
        if key is not None:
            payload["extra_headers"] = {"Authorization": f"Bearer {key.get_secret_value()}"}
        return payload | {"messages": [], "extra_body": (payload.get("extra_body") or {}) | plain}

    @override
    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        # LangChain fails on the whole answer where a tool's arguments are JSON but no object.
        raw = list[list[str]]()
        for choice in getattr(response, "choices", None) or ():
            calls = getattr(choice.message, "tool_calls", None) or ()
            raw.append([call.function.arguments for call in calls])
            for call in calls:
                call.function.arguments = json.dumps(dict(parsed_args(call.function.arguments)))
        result = super()._create_chat_result(response, generation_info)  # pyright: ignore[reportUnknownMemberType]
        for generation, arguments in zip(result.generations, raw, strict=False):
            generation.message.additional_kwargs[RAW_ARGUMENTS] = arguments
        return result


class OpenAIChat(LangChainChat):
    """LangChainChat that asks for whole replies in plain JSON, where no callback or trace of LangChain's observes.

    Studio's stream of tokens is such a callback. Streams are always LangChain's.
    """

    def __init__(
        self,
        model: PlainChatOpenAI,
        client: PlainClient,
        *,
        failures: Failures,
        timeout_seconds: float,
        provider: OpenAIProvider,
    ) -> None:
        super().__init__(
            model,
            name=model.model_name,
            dialect=OpenAIDialect(),
            failures=failures,
            timeout_seconds=timeout_seconds,
            provider=provider,
        )
        self._client = client

    @override
    async def _ask(self, request: ChatRequest) -> ChatReply:
        if _is_observed():
            return await super()._ask(request)
        body = chat_body(request, model=self.name)
        answer = await self._client.post("/chat/completions", body, api_key=request.api_key)
        return read_reply(answer, asked=body["model"])


def _is_observed() -> bool:
    """Tell whether a call through LangChain would be shown to a handler: of the run around it, or of a tracer."""
    return bool(AsyncCallbackManager.configure(ensure_config().get("callbacks")).handlers)


@asynccontextmanager
async def open_openai_chat(
    source: Endpoint, *, model: str, model_setting: str, timeout_seconds: float
) -> AsyncGenerator[ChatModel]:
    """Open the chat model `model` at `source`. `model_setting` is the setting that errors name."""

    async def key() -> str:
        # As a callable, because a plain key would make LangChain build a blocking client too.
        return source.api_key

    failures = Failures(source.key_setting, model_setting, source.address_setting)
    async with (
        open_client(source, timeout_seconds=timeout_seconds) as client,
        open_plain_client(source, client) as plain,
    ):
        chat = await asyncio.to_thread(
            PlainChatOpenAI,
            model=model,
            api_key=key,
            base_url=source.base_url,
            root_async_client=client,
            async_client=client.chat.completions,
            stream_usage=True,
            use_responses_api=False,
            stream_chunk_timeout=None,
        )
        yield OpenAIChat(
            chat,
            plain,
            failures=failures,
            timeout_seconds=timeout_seconds,
            provider=OpenAIProvider(client, failures, lists=source.protocol != "azure"),
        )
