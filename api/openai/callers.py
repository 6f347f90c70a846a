"""Checks the model and the key that a request of OpenAI's clients names, and says whose error a failure is."""

from fastapi import Request

from recollect.api.auth.bearer import bearer_token
from recollect.graph.client_chat import ClientChat
from recollect.graph.resources import Services
from recollect.memory.values.errors import (
    Forbidden,
    InvalidRequest,
    ModelUnavailable,
    Problem,
    RateLimited,
    RecollectError,
    Unauthorized,
    UnknownModel,
)

REFUSED = "The model's provider refused the key; send a valid one as `Authorization: Bearer …`."
RETRY_SECONDS = 10
"""The Retry-After where the provider rate-limits the caller's own key."""


def callers_key(request: Request, services: Services) -> str | None:
    """Return the caller's bearer token where it is the chat model's key; never this service's own token."""
    token = bearer_token(request.scope) if services.forwards_keys else None
    if token is None or request.app.state.admission.is_owners(token):
        return None
    if not token.isascii():
        raise Unauthorized(REFUSED)
    return token.decode()


async def check_model(services: Services, wanted: str | None, *, api_key: str | None) -> None:
    """Check that the provider lists the model; it is asked only if `wanted` is not the configured one.

    Raises:
        UnknownModel: it lists no such model.
    """
    chat = services.memory.chat
    if wanted is None or wanted == chat.name:
        return
    try:
        listed = await chat.models(api_key=api_key)
    except ModelUnavailable as error:
        raise with_callers_key(error) if api_key else error from error
    if wanted not in listed:
        raise UnknownModel


def callers_own(error: ModelUnavailable, chat: ClientChat) -> RecollectError:
    """Return the error as the caller's own, where the provider refused the caller's key or request."""
    brought = chat.parameters or chat.tools or chat.content or chat.history or chat.rounds
    if error.status in {400, 422} and brought:
        return InvalidRequest(
            f"The model's provider refused the request ({error.status}); check its parameters, tools and messages."
        )
    return with_callers_key(error) if chat.api_key else error


def with_callers_key(error: ModelUnavailable) -> RecollectError:
    """Return the error as the caller's own, where the provider refused the caller's key."""
    if error.status == 401:
        return Unauthorized(REFUSED)
    if error.status == 403:
        return Forbidden("The model's provider does not let this key ask the model.")
    return RateLimited(retry_after=RETRY_SECONDS) if error.status == 429 else error


def wrong(field: str, problem: str) -> InvalidRequest:
    """Return the error that names one field of the request."""
    return InvalidRequest(f"The request is not valid: see {field}.", problems=[Problem(field, problem)])
