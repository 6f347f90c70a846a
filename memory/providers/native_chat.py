"""Opens Anthropic, Gemini and Vertex AI as chat models, through LangChain's `init_chat_model`.

They come with the extras `anthropic`, `gemini` and `vertex`.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.providers.accounts import GoogleAccount
from recollect.memory.providers.asked_chat import AskedChat, Provider
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.extras import imported
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.google.connections import own_connections
from recollect.memory.providers.google.credentials import vertex_options
from recollect.memory.providers.langchain_chat import LangChainAsking, NativeDialect
from recollect.memory.providers.native_ping import ping_address
from recollect.memory.providers.wire import bound
from recollect.memory.values.frozen import frozen

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_LANGCHAIN_NAMES = {"anthropic": "anthropic", "gemini": "google_genai", "vertex": "google_genai"}
_PACKAGES = {
    "anthropic": "langchain_anthropic",
    "gemini": "langchain_google_genai",
    "vertex": "langchain_google_genai",
}
_GOOGLE_JSON = {"response_mime_type": "application/json"}
_JSON_OPTIONS: dict[str, dict[str, Any]] = {"anthropic": {}, "gemini": _GOOGLE_JSON, "vertex": _GOOGLE_JSON}
_COMMON = {name: name for name in ("temperature", "top_p", "top_k")}
_GOOGLE_FIELDS = {
    **_COMMON,
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "max_output_tokens"),
    **{name: name for name in ("seed", "presence_penalty", "frequency_penalty")},
}
_FIELDS: dict[str, dict[str, str]] = {
    "anthropic": {**_COMMON, **dict.fromkeys(("max_tokens", "max_completion_tokens"), "max_tokens")},
    "gemini": _GOOGLE_FIELDS,
    "vertex": _GOOGLE_FIELDS,
}
_MAX_RETRIES = 1


@asynccontextmanager
async def open_native_chat(
    source: Endpoint, *, model: str, model_setting: str, timeout_seconds: float
) -> AsyncGenerator[ChatModel]:
    """Open the chat model `model` of Anthropic or Google. `model_setting` is the setting that errors name.

    Raises:
        ConfigurationError: the provider's package is not installed, or its credentials cannot be read.
    """
    langchain_model = await asyncio.to_thread(build_native_chat, source, model=model, timeout_seconds=timeout_seconds)
    async with AsyncExitStack() as opened:
        await _own_connections(langchain_model, source, opened)
        dialect = NativeDialect(json_options=_JSON_OPTIONS[source.provider], fields=_FIELDS[source.provider])
        yield AskedChat(
            LangChainAsking(langchain_model, name=model, dialect=dialect),
            failures=Failures(source.key_setting, model_setting, source.address_setting),
            timeout_seconds=timeout_seconds,
            provider=_NativeProvider(source),
        )


def build_native_chat(source: Endpoint, *, model: str, timeout_seconds: float) -> BaseChatModel:
    """Return LangChain's own client of the provider. It opens no connection.

    Raises:
        ConfigurationError: the provider's package is not installed, or its credentials cannot be read.
    """
    imported(_PACKAGES[source.provider], f"PROVIDER={source.provider}", extra=source.provider)
    imported("langchain", f"PROVIDER={source.provider}", extra=source.provider)
    from langchain.chat_models import init_chat_model

    credentials: dict[str, Any] = {"api_key": source.api_key}
    if isinstance(source.account, GoogleAccount):
        credentials = vertex_options(source.account)
    # LangChain's overloads do not see through the credentials.
    model_of: Any = init_chat_model
    return cast(
        "BaseChatModel",
        model_of(
            model,
            model_provider=_LANGCHAIN_NAMES[source.provider],
            base_url=source.base_url or None,
            timeout=timeout_seconds,
            max_retries=_MAX_RETRIES,
            **credentials,
        ),
    )


async def _own_connections(model: BaseChatModel, source: Endpoint, opened: AsyncExitStack) -> None:
    """Give the model connections of its own that close with `opened`."""
    if source.protocol in {"gemini", "vertex"}:
        own_connections(cast("Any", model).client, opened)
        opened.push_async_callback(cast("Any", model).aclose)
        return
    # LangChain shares one connection pool in the process and never closes it; it looks for its client under this name.
    client = await asyncio.to_thread(_anthropic_client, model)
    vars(model)["_async_client"] = await opened.enter_async_context(client)


def _anthropic_client(model: BaseChatModel) -> "AsyncAnthropic":
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(**cast("Any", model)._client_params)
    bound(cast("Any", client)._client)
    return client


@frozen
class _NativeProvider(Provider):
    source: Endpoint

    @override
    async def ping(self) -> None:
        await ping_address(self.source)

    @override
    async def models(self, api_key: str | None) -> tuple[str, ...]:
        """Return none: the caller adds the configured model."""
        return ()
