"""Translates a provider's error to ModelTimeout, an outage, or a refusal that names the setting to check.

One reading serves every client library: OpenAI's and Anthropic's SDKs come from one generator, Google's says `code`,
AWS's has a `response`, and all others stand on httpx or its successor. A provider's own words are never repeated: they
can quote the user or the key.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from recollect.memory.values.errors import ModelTimeout, ModelUnavailable
from recollect.memory.values.frozen import frozen

_TIMEOUTS = frozenset({"APITimeoutError", "TimeoutException", "ReadTimeoutError", "ConnectTimeoutError"})
_CONNECTIONS = frozenset({"APIConnectionError", "TransportError", "ClientConnectionError", "HTTPClientError"})
_BROKEN_OFF = frozenset({"ClientPayloadError"})
"""The error of aiohttp whose cause, the parser's own, says 400 as if the server had."""
_NO_CREDENTIALS = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "DefaultCredentialsError",
        "RefreshError",
        "ClientAuthenticationError",
    }
)
"""The errors of AWS's, Google's and Microsoft's clients where they find no credentials, or are refused with them."""
_IN_STREAM = frozenset({"APIError", "BrokenOff"})
_ENDED_EARLY = "The model's provider broke off its answer."
_PASSING = frozenset({408, 409, 425, 429})
_REFUSED_CONTENT = frozenset({400, 404, 422})


@frozen
class Failures:
    """Reads errors for one model. The settings are those that messages name."""

    key_setting: str
    model_setting: str
    address_setting: str = "OPENAI_BASE_URL"
    timeout_setting: str = "CHAT_TIMEOUT_SECONDS"

    def read(self, error: Exception) -> ModelUnavailable:
        """Return the error as this package's own; an error of unknown form becomes one of an unreadable answer."""
        known = next((link for link in _chain(error) if isinstance(link, ModelUnavailable)), None)
        if known is not None:
            return known
        if isinstance(error, TimeoutError) or _is_a(error, _TIMEOUTS):
            return ModelTimeout(f"The model did not answer within {self.timeout_setting}.")
        if _is_a(error, _BROKEN_OFF):
            return ModelUnavailable(_ENDED_EARLY, outage=True)
        status = status_in(error)
        if status is not None:
            return self.refused(status)
        if _is_a(error, _NO_CREDENTIALS):
            return self.refused(401)
        if isinstance(error, OSError) or _is_a(error, _CONNECTIONS):
            return ModelUnavailable("The model's provider cannot be reached.", outage=True)
        if _is_a(error, _IN_STREAM):
            return ModelUnavailable(_ENDED_EARLY, outage=True)
        return ModelUnavailable(
            f"The model's answer could not be read; check {self.address_setting} and {self.model_setting}.",
            outage=False,
        )

    def refused(self, status: int) -> ModelUnavailable:
        """Return the error for an HTTP status of 400 or more; 429 and 5xx are outages, which a retry may overcome."""
        if status in _PASSING or status >= 500:
            return ModelUnavailable(
                f"The model's provider is out of order or too busy ({status}).", outage=True, status=status
            )
        if status in {401, 403}:
            return ModelUnavailable(
                f"The model's provider refused the key ({status}); check {self.key_setting}.",
                outage=False,
                status=status,
            )
        if status == 404:
            return ModelUnavailable(
                f"The provider does not know the model (404); check {self.model_setting} and {self.address_setting}.",
                outage=False,
                status=status,
            )
        return ModelUnavailable(
            f"The model's provider refused the request ({status}); check {self.model_setting}.",
            outage=False,
            status=status,
        )


def status_in(error: BaseException) -> int | None:
    """Return the HTTP status in the error or its causes; also an `error.code` in a body with status 200.

    An answer that broke off has none: the 400 in its cause is the parser's.
    """
    if _is_a(error, _BROKEN_OFF):
        return None
    for link in _chain(error):
        for value in (
            getattr(link, "status_code", None),
            getattr(link, "code", None),
            _code_in_body(link),
            _code_of_aws(link),
        ):
            if isinstance(value, int | str) and str(value).isdecimal() and 400 <= int(value) <= 599:
                return int(value)
    return None


def refuses_content(error: BaseException) -> bool:
    """Tell whether the provider refused the request's content (400, 404, 422), other than for its length."""
    too_long = any("ContextOverflow" in type(link).__name__ for link in _chain(error))
    return status_in(error) in _REFUSED_CONTENT and not too_long


def blames_tools(error: BaseException) -> bool:
    """Tell whether the refusal names tools as such, and not the way in which one was chosen."""
    words = str(error).lower().replace("_", " ")
    return "tool" in words and "tool choice" not in words


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(5):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__


def _code_in_body(error: BaseException) -> object:
    body: object = error.args[0] if error.args else None
    return cast("Mapping[str, Any]", body).get("code") if isinstance(body, Mapping) else None


def _code_of_aws(error: BaseException) -> object:
    """Return the status that AWS's client has in its error's `response`."""
    response: object = getattr(error, "response", None)
    metadata = cast("Mapping[str, Any]", response).get("ResponseMetadata") if isinstance(response, Mapping) else None
    return cast("Mapping[str, Any]", metadata).get("HTTPStatusCode") if isinstance(metadata, Mapping) else None


def _is_a(error: BaseException, names: frozenset[str]) -> bool:
    return any(cls.__name__ in names for link in _chain(error) for cls in type(link).__mro__)
