"""Opens Anthropic and Gemini as chat models, through LangChain's `init_chat_model` (extras `anthropic`, `gemini`)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import httpx
from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.langchain_chat import LangChainChat, NativeDialect, Provider
from recollect.memory.providers.wire import bound, hooks
from recollect.memory.values.errors import ConfigurationError, ModelTimeout, ModelUnavailable

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_LANGCHAIN_NAMES = {"anthropic": "anthropic", "gemini": "google_genai"}
_PACKAGES = {"anthropic": "langchain_anthropic", "gemini": "langchain_google_genai"}
_JSON_OPTIONS: dict[str, dict[str, Any]] = {"anthropic": {}, "gemini": {"response_mime_type": "application/json"}}
_COMMON = {name: name for name in ("temperature", "top_p", "top_k")}
_FIELDS: dict[str, dict[str, str]] = {
    "anthropic": {**_COMMON, **dict.fromkeys(("max_tokens", "max_completion_tokens"), "max_tokens")},
    "gemini": {
        **_COMMON,
        **dict.fromkeys(("max_tokens", "max_completion_tokens"), "max_output_tokens"),
        **{name: name for name in ("seed", "presence_penalty", "frequency_penalty")},
    },
}
_PING_SECONDS = 2.0
_MAX_RETRIES = 1


@asynccontextmanager
async def open_native_chat(
    source: Endpoint, *, model: str, model_setting: str, timeout_seconds: float
) -> AsyncGenerator[ChatModel]:
    """Open the chat model `model` of Anthropic or Google. `model_setting` is the setting that errors name.

    Raises:
        ConfigurationError: the provider's package is not installed.
    """
    langchain_model = await asyncio.to_thread(build, source, model=model, timeout_seconds=timeout_seconds)
    async with AsyncExitStack() as opened:
        await _own_connections(langchain_model, source, opened)
        yield LangChainChat(
            langchain_model,
            name=model,
            dialect=NativeDialect(json_options=_JSON_OPTIONS[source.provider], fields=_FIELDS[source.provider]),
            failures=Failures(key_setting=source.key_setting, model_setting=model_setting),
            timeout_seconds=timeout_seconds,
            provider=_NativeProvider(source),
        )


def build(source: Endpoint, *, model: str, timeout_seconds: float) -> BaseChatModel:
    """Return LangChain's own client of the provider. It opens no connection.

    Raises:
        ConfigurationError: the provider's package is not installed.
    """
    try:
        import_module(_PACKAGES[source.provider])
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise ConfigurationError(
            f'PROVIDER={source.provider} needs another package: pip install "recollect[{source.provider}]".'
        ) from error
    return init_chat_model(
        model,
        model_provider=_LANGCHAIN_NAMES[source.provider],
        api_key=source.api_key,
        base_url=source.base_url,
        timeout=timeout_seconds,
        max_retries=_MAX_RETRIES,
    )


async def _own_connections(model: BaseChatModel, source: Endpoint, opened: AsyncExitStack) -> None:
    """Give the model connections of its own that close with `opened`."""
    if source.provider == "gemini":
        # Without a client of ours, Google's library would use aiohttp where that is installed.
        connections = cast("Any", model).client._api_client
        bound(connections._async_httpx_client)
        connections._http_options.httpx_async_client = connections._async_httpx_client
        opened.push_async_callback(connections._async_httpx_client.aclose)
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


@dataclass(frozen=True, slots=True)
class _NativeProvider(Provider):
    source: Endpoint

    @override
    async def ping(self) -> None:
        try:
            async with httpx.AsyncClient(timeout=_PING_SECONDS, event_hooks=hooks()) as http:
                status = (await http.get(self.source.base_url)).status_code
        except httpx.TimeoutException:
            raise ModelTimeout("The model's provider did not answer in time.") from None
        except httpx.HTTPError:
            raise ModelUnavailable("The model's provider cannot be reached.", outage=True) from None
        if status >= 500:
            raise ModelUnavailable(f"The model's provider is out of order ({status}).", outage=True)

    @override
    async def models(self, api_key: str | None) -> tuple[str, ...]:
        """Return none: the caller adds the configured model."""
        return ()
