"""Asks an OpenAI-compatible server through LangChain's ChatOpenAI, where LangChain observes the call.

Studio's stream of tokens and LangSmith's traces observe calls so. The libraries are imported at the first such call.
"""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, cast

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from recollect.memory.providers.answer_parts import parsed_args
from recollect.memory.providers.chat_messages import RAW_ARGUMENTS
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.langchain_chat import CALLERS_KEY, LangChainAsking, OpenAIDialect
from recollect.memory.providers.openai.client import open_client


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


async def enter_observed(
    stack: AsyncExitStack, source: Endpoint, *, model: str, timeout_seconds: float
) -> LangChainAsking:
    """Open `model` at `source` through LangChain until `stack` closes."""

    async def key() -> str:
        # As a callable, because a plain key would make LangChain build a blocking client too.
        return source.api_key

    client = await stack.enter_async_context(open_client(source, timeout_seconds=timeout_seconds))
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
    return LangChainAsking(chat, name=model, dialect=OpenAIDialect())
