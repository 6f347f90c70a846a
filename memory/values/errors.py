"""Every error that Recollect raises on purpose.

The tree, with the HTTP status each one becomes:

RecollectError
├── ConfigurationError            stops the start
├── InvalidRequest          422   invalid_request
│   ├── UnreadableDocument        unreadable_document
│   ├── UnsupportedMedia    415   unsupported_media_type
│   └── TooLarge            413   too_large
├── Unauthorized            401   unauthorized
├── Forbidden               403   forbidden
├── RateLimited             429   rate_limited
├── NotFound                404   not_found
│   └── UnknownModel              model_not_found
├── Conflict                409
│   ├── TurnConflict              turn_conflict
│   ├── ThreadBusy                thread_busy
│   ├── UserErased                user_erased
│   ├── NotLastTurn               not_last_turn
│   ├── UpdatePending             update_pending
│   ├── FactsChanged              facts_changed
│   ├── PreviewOutdated           preview_outdated
│   ├── FactConflict              fact_conflict
│   ├── Rebuilding                reindex_running
│   └── EmbedderConflict          embedder_conflict
├── StoreUnavailable        503   store_unavailable
│   ├── IndexUnavailable          (costs the search, never the reply)
│   ├── ServiceUnreachable        (raised by clients)
│   └── ErasurePending            (goes on by itself)
├── Busy                    503   busy
│   ├── ImportUnfinished          import_unfinished
│   ├── ImportInterrupted         import_interrupted
│   └── Stopping                  stopping
├── IssuerUnavailable       503   issuer_unavailable
├── ModelUnavailable        502   model_unavailable
│   └── ModelTimeout        504   model_timeout
├── UnreadableAnswer        502   a model's answer that no rule could read; counts as an attempt
└── PointTaken                    the index holds another user's point under that id; counts as an attempt

The class's docstring is its message unless one is given: a sentence that says what to do next, without user text.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple


class RecollectError(Exception):
    """Something went wrong inside Recollect; the log names it."""

    code: str = "internal_error"

    def __init__(self, message: str | None = None, *, turn_id: str | None = None) -> None:
        self.message = message or inspect.cleandoc(type(self).__doc__ or "")
        self.turn_id = turn_id
        super().__init__(self.message)


class ConfigurationError(RecollectError):
    """A setting is wrong; the message names the setting to change."""

    code = "configuration_error"


class Problem(NamedTuple):
    """One thing wrong with a request: the field's dotted path and what is wrong with it."""

    field: str
    problem: str


class InvalidRequest(RecollectError):
    """The request is not valid; `details` names each field and its problem."""

    code = "invalid_request"

    def __init__(self, message: str | None = None, *, problems: list[Problem] | None = None) -> None:
        super().__init__(message)
        self.problems = problems or []


class TooLarge(InvalidRequest):
    """The request's body is over the limit; send less."""

    code = "too_large"


class UnreadableDocument(InvalidRequest):
    """No text can be read from the document; send it as text, or in another format."""

    code = "unreadable_document"


class UnsupportedMedia(InvalidRequest):
    """Documents of this kind are not read; send text, Markdown, HTML, PDF or DOCX."""

    code = "unsupported_media_type"


class Unauthorized(RecollectError):
    """The request needs a key: send it as `Authorization: Bearer KEY`."""

    code = "unauthorized"


class Forbidden(RecollectError):
    """This needs an administrator's key."""

    code = "forbidden"


class RateLimited(RecollectError):
    """There are too many requests; wait for `Retry-After` seconds."""

    code = "rate_limited"

    def __init__(self, *, retry_after: int) -> None:
        super().__init__()
        self.retry_after = retry_after


class NotFound(RecollectError):
    """There is no such thing, or it is another user's."""

    code = "not_found"


class UnknownModel(NotFound):
    """The provider lists no such model; GET /v1/models names those that there are."""

    code = "model_not_found"


class Conflict(RecollectError):
    """The request contradicts what is stored."""


class TurnConflict(Conflict):
    """This turn_id already belongs to another thread or message; send a new turn_id."""

    code = "turn_conflict"


class ThreadBusy(Conflict):
    """Another turn of this thread is still running; nothing was stored, so send the request again."""

    code = "thread_busy"


class UserErased(Conflict):
    """The user was erased while this turn was running; nothing of it is kept."""

    code = "user_erased"


class NotLastTurn(Conflict):
    """Only the last turn of a thread can be answered anew; another one has followed it."""

    code = "not_last_turn"


class UpdatePending(Conflict):
    """The turn is still being learned from; try again when its update has ended."""

    code = "update_pending"


class FactsChanged(Conflict):
    """Facts have changed since this turn taught them; nothing was undone. `force` undoes the rest and leaves these."""

    code = "facts_changed"

    def __init__(self, message: str | None = None, *, details: Sequence[Mapping[str, str | None]] = ()) -> None:
        super().__init__(message)
        self.details = list(details)


class PreviewOutdated(Conflict):
    """Learning from this turn again would now do something else than was shown; look at the difference again."""

    code = "preview_outdated"


class FactConflict(Conflict):
    """The fact was changed at the same time, or is not in a state for this; read it again."""

    code = "fact_conflict"


class VersionChanged(RecollectError):
    """It has changed since the version that the request names; read it again, and decide anew."""

    code = "version_changed"


class Rebuilding(Conflict):
    """The index is being rebuilt already; wait until that has ended."""

    code = "reindex_running"


class EmbedderConflict(Conflict):
    """The embedders are not in the state that this needs; look at `recollect embedder status`."""

    code = "embedder_conflict"


class StoreUnavailable(RecollectError):
    """The document store cannot be reached; send the request again with the same turn_id."""

    code = "store_unavailable"


class IndexUnavailable(StoreUnavailable):
    """The vector index cannot be reached; replies go on without search until it is back."""


class ServiceUnreachable(StoreUnavailable):
    """The service cannot be reached; see whether it runs, and send the request again with the same turn_id."""


class PointTaken(RecollectError):
    """The index holds another user's point in the place of this one, and keeps it; run `recollect reindex`."""


class ErasurePending(StoreUnavailable):
    """Not everything could be erased yet; it goes on by itself."""

    def __init__(self, erasure_id: str, what: str) -> None:
        super().__init__(
            f"Not everything could be erased yet ({what} cannot be reached, or is not through); it goes on by itself: "
            f"see /api/erasures/{erasure_id}, or send the request again."
        )
        self.erasure_id = erasure_id


class Busy(RecollectError):
    """Too many imports, uploads and exports are under way; send the request again after `Retry-After` seconds."""

    code = "busy"
    retry_after: ClassVar[int] = 10


class ImportUnfinished(Busy):
    """The import took longer than IMPORT_SECONDS. What came is stored; send the rest, or the same lines again."""

    code = "import_unfinished"
    retry_after = 1


class ImportInterrupted(Busy):
    """The process that imported has ended. Send the same lines again: those that are stored count as known."""

    code = "import_interrupted"
    retry_after = 1


class Stopping(Busy):
    """The service stops. What came is stored; send the request again when the service is back."""

    code = "stopping"


class IssuerUnavailable(RecollectError):
    """The keys that tokens are checked with (JWT_JWKS_URL) cannot be fetched; send the request again later."""

    code = "issuer_unavailable"


class ModelUnavailable(RecollectError):
    """The model cannot be reached; the message is stored, so send it again with the same turn_id.

    `outage` is true for what passes by itself (no connection, 429, 5xx): background work waits for it as long as it
    lasts. It is false for a refusal (400, 401, 404, …), which counts as an attempt. `status` is the provider's own,
    where it answered with one.
    """

    code = "model_unavailable"

    def __init__(
        self,
        message: str | None = None,
        *,
        outage: bool = True,
        turn_id: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(
            message or "The model cannot be reached; send the request again with the same turn_id.", turn_id=turn_id
        )
        self.outage = outage
        self.status = status


class ModelTimeout(ModelUnavailable):
    """The model did not answer in time."""

    code = "model_timeout"

    def __init__(self, message: str | None = None, *, turn_id: str | None = None) -> None:
        super().__init__(
            message
            or "The model did not answer within CHAT_TIMEOUT_SECONDS; send the request again with the same turn_id.",
            outage=True,
            turn_id=turn_id,
        )


class UnreadableAnswer(RecollectError):
    """The extraction model's answer could not be read as decisions."""

    code = "unreadable_answer"


def is_outage(error: BaseException) -> bool:
    """Tell whether waiting mends it: the connection, a timeout, 429 or 5xx. Anything else counts as an attempt."""
    if isinstance(error, ModelUnavailable):
        return error.outage
    return isinstance(error, StoreUnavailable | TimeoutError | ConnectionError)
