"""Makes the library's exceptions from a service's answers."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import httpx

from recollect.memory.values.errors import (
    Busy,
    ConfigurationError,
    ErasurePending,
    FactConflict,
    FactsChanged,
    Forbidden,
    ImportUnfinished,
    InvalidRequest,
    IssuerUnavailable,
    ModelTimeout,
    ModelUnavailable,
    NotFound,
    NotLastTurn,
    PreviewOutdated,
    Problem,
    RateLimited,
    Rebuilding,
    RecollectError,
    Stopping,
    StoreUnavailable,
    ThreadBusy,
    TooLarge,
    TurnConflict,
    Unauthorized,
    UnknownModel,
    UnreadableAnswer,
    UnreadableDocument,
    UnsupportedMedia,
    UpdatePending,
    UserErased,
    VersionChanged,
)

_INVALID = {kind.code: kind for kind in (InvalidRequest, TooLarge, UnreadableDocument, UnsupportedMedia)}
_PLAIN = {
    kind.code: kind
    for kind in (
        *(Busy, FactConflict, Forbidden, ImportUnfinished, IssuerUnavailable, ModelTimeout, ModelUnavailable, NotFound),
        *(NotLastTurn, PreviewOutdated, Rebuilding, Stopping, StoreUnavailable, ThreadBusy, TurnConflict, Unauthorized),
        *(UnknownModel, UnreadableAnswer, UpdatePending, UserErased, VersionChanged),
    )
}
Json = Mapping[str, Any]


def read_answer(response: httpx.Response, *, place: str) -> Any:
    """Return the answer's JSON, None where it has none to give; `place` is the service's address, for errors.

    Raises:
        RecollectError: the exception that the service's own memory raised, rebuilt.
        ConfigurationError: it is no answer of such a service.
    """
    if response.is_success and not response.content:
        return None
    try:
        said = response.json()
    except ValueError:
        raise _no_service(response, place) from None
    if response.is_success:
        return said
    error: Any = cast("Json", said).get("error") if isinstance(said, Mapping) else None
    if not isinstance(error, Mapping) or "details" not in error:
        raise _no_service(response, place)
    raise error_of(cast("Json", error), retry_after=response.headers.get("Retry-After"))


def error_of(said: Json, *, retry_after: str | None = None) -> RecollectError:
    """Return the exception with the code, sentence, details and turn of an error's JSON."""
    code, message, turn_id = (str(said[name]) if said.get(name) else None for name in ("code", "message", "turn_id"))
    details = [cast("Json", one) for one in _list(said.get("details")) if isinstance(one, Mapping)]
    error: RecollectError
    if code in _INVALID:
        problems = [Problem(str(one.get("field")), str(one.get("problem"))) for one in details]
        error = _INVALID[code](message, problems=problems)
    elif code == FactsChanged.code:
        error = FactsChanged(message, details=[dict(one) for one in details])
    elif code == RateLimited.code:
        error = RateLimited(retry_after=int(retry_after) if retry_after and retry_after.isdecimal() else 1)
    elif code == StoreUnavailable.code and details and details[0].get("erasure_id"):
        error = ErasurePending(str(details[0]["erasure_id"]), "a part of the service")
    elif code in _PLAIN:
        error = _PLAIN[code](message, turn_id=turn_id)
    else:
        error = RecollectError(message, turn_id=turn_id)
        error.code = code or error.code
    return error


def _list(details: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", details) if isinstance(details, list) else ()


def _no_service(response: httpx.Response, place: str) -> ConfigurationError:
    return ConfigurationError(
        f"What answers at {place} (status {response.status_code}) is no service of Recollect's; check the url."
    )
