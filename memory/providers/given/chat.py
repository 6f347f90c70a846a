"""Makes a chat model of a program's own object: LangChain's chat model, or the port itself."""

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from recollect.memory.ports.chat_model import ChatModel
from recollect.memory.providers.asked_chat import AskedChat, Provider
from recollect.memory.providers.failures import Failures
from recollect.memory.providers.langchain_chat import LangChainAsking, NativeDialect
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.given import GivenChat

_PARAMETERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens")


def given_chat(given: GivenChat, *, timeout_seconds: float) -> ChatModel:
    """Return the object as a chat model; nobody closes it but the program that made it.

    Raises:
        ConfigurationError: it is neither of the two kinds.
    """
    if given.is_port:
        return cast("ChatModel", given.given)
    if not isinstance(given.given, BaseChatModel):
        raise ConfigurationError("chat must be LangChain's chat model, or Recollect's own port ChatModel.")
    known = type(given.given).model_fields
    dialect = NativeDialect(
        json_options={},
        fields={name: name for name in _PARAMETERS if name in known},
        takes_tools=_binds_tools(given.given),
    )
    return AskedChat(
        LangChainAsking(given.given, name=given.name, dialect=dialect),
        failures=Failures("the given chat model's key", "the given chat model", "its address"),
        timeout_seconds=timeout_seconds,
        provider=_Unknown(),
    )


def _binds_tools(model: BaseChatModel) -> bool:
    """Tell whether the model's class takes tools; LangChain's base class only raises."""
    return cast("Any", type(model)).bind_tools is not cast("Any", BaseChatModel).bind_tools


class _Unknown(Provider):
    """The provider of an object that says nothing of it."""

    @override
    async def ping(self) -> None:
        """Return at once: the object has no call that costs nothing."""

    @override
    async def models(self, api_key: str | None) -> Sequence[str]:
        """Return none: the caller adds the model itself."""
        return ()
