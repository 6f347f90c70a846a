"""Shows every error as {"error": {"code", "message", "details", "turn_id"}}, under /v1 in OpenAI's form.

To people, at the inspector's addresses, it is a page.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from recollect.api.headers import security_headers
from recollect.api.openai_errors import in_openais_form, is_openais
from recollect.api.schemas.requests import ONE, SEVERAL
from recollect.api.schemas.schema_names import answer_of
from recollect.memory.values.errors import (
    Busy,
    Conflict,
    ErasurePending,
    FactsChanged,
    Forbidden,
    InvalidRequest,
    IssuerUnavailable,
    ModelTimeout,
    ModelUnavailable,
    NotFound,
    Problem,
    RateLimited,
    RecollectError,
    StoreUnavailable,
    TooLarge,
    Unauthorized,
    UnreadableAnswer,
    UnsupportedMedia,
    VersionChanged,
)
from recollect.memory.values.scope import ID_RULE

logger = logging.getLogger(__name__)

STATUSES: Mapping[type[RecollectError], int] = {
    TooLarge: 413,
    UnsupportedMedia: 415,
    InvalidRequest: 422,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    VersionChanged: 412,
    RateLimited: 429,
    Busy: 503,
    IssuerUnavailable: 503,
    StoreUnavailable: 503,
    ModelTimeout: 504,
    ModelUnavailable: 502,
    UnreadableAnswer: 502,
}
HTTP_CODES: Mapping[int, str] = {
    400: "invalid_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
}
MOST_DETAILS, MOST_NAMED, MOST_FIELD_CHARACTERS = 50, 5, 200
"""Bounds of an answer's details, however many unknown fields a request has and however long their names are."""
PROBLEMS: Mapping[str, str] = {
    "extra_forbidden": "is not a known field",
    "missing": "is missing",
    "json_invalid": "is not valid JSON",
    "string_pattern_mismatch": f"must be {ID_RULE}",
    "string_too_short": "must not be empty",
}


RESPONSES: dict[int | str, dict[str, Any]] = {
    422: answer_of("ErrorAnswer", "The request is not valid: `details` names each field."),
    "4XX": answer_of("ErrorAnswer", "See `error.code`."),
    "5XX": answer_of("ErrorAnswer", "See `error.code`; with a `turn_id` the turn is repeatable."),
}


ErrorForm = Callable[[Scope, Mapping[str, Any], int, Mapping[str, str]], Response]
"""Makes the response that shows an error, from the request, the error in the contract's form, status and headers."""
ERROR_FORM = "error_form"
"""The name in a request's state under which a door for people keeps its ErrorForm."""


class ErrorResponse(JSONResponse):
    """An error in the contract's form; what answers a path under /v1 goes out in OpenAI's, a page's as a page."""

    def __init__(self, whole: Mapping[str, Any], status: int, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(whole, status, headers)
        self._whole = whole
        self._more = dict(headers or {})

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the error, in the form of the requested path."""
        form: ErrorForm | None = scope.get("state", {}).get(ERROR_FORM)
        if form is not None:
            return await form(scope, self._whole, self.status_code, self._more)(scope, receive, send)
        self.take_form(scope["path"])
        return await super().__call__(scope, receive, send)

    def take_form(self, path: str) -> None:
        """Use the form that errors of this path have."""
        if is_openais(path):
            shown, self.status_code = in_openais_form(self._whole, self.status_code)
            self.body = self.render(shown)
            self.headers["Content-Length"] = str(len(self.body))


def error_body(error: RecollectError) -> dict[str, Any]:
    """Return the error as the contract shows it."""
    details: Sequence[Mapping[str, Any]] = ()
    if isinstance(error, InvalidRequest):
        details = [problem._asdict() for problem in error.problems]
    elif isinstance(error, FactsChanged):
        details = error.details
    elif isinstance(error, ErasurePending):
        details = [{"erasure_id": error.erasure_id}]
    return _body(error.code, error.message, details or None, error.turn_id)


def status_of(error: RecollectError) -> int:
    """Return the HTTP status of an error."""
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)


def error_answer(error: RecollectError) -> JSONResponse:
    """Return the error as a response."""
    headers: dict[str, str] = {}
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    elif isinstance(error, RateLimited | Busy):
        headers["Retry-After"] = str(error.retry_after)
    return ErrorResponse(error_body(error), status_of(error), headers)


def install_errors(app: FastAPI) -> None:
    """Make the app answer every error in the contract's form."""
    app.add_exception_handler(RecollectError, _recollect_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected_error)


def plain_error(status: int, code: str, message: str) -> ErrorResponse:
    """Return an error response made outside the routes."""
    return ErrorResponse(_body(code, message, None, None), status)


def _body(code: str, message: str, details: Sequence[Any] | None, turn_id: str | None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "details": details, "turn_id": turn_id}}


async def _recollect_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RecollectError)
    return error_answer(error)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # The first part of a place is the field's location (body, query, path); a field may have such a name too.
    errors = [{**item, "loc": _without_form(item["loc"][1:])} for item in error.errors()[:MOST_DETAILS]]
    return error_answer(invalid_request(errors))


def invalid_request(errors: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """Return pydantic's errors as the contract's, without quoting what was sent; `loc` begins with the field."""
    problems = [_problem(item) for item in errors[:MOST_DETAILS]]
    fields = list(dict.fromkeys(problem.field for problem in problems))
    named = ", ".join(fields[:MOST_NAMED]) + (", …" if len(fields) > MOST_NAMED else "")
    return InvalidRequest(f"The request is not valid: see {named}.", problems=problems)


def _without_form(place: Sequence[Any]) -> Sequence[Any]:
    """Return the place of a problem without the form of a body that may be one object or several."""
    return place[1:] if place and place[0] in (ONE, SEVERAL) else place


def _problem(item: Mapping[str, Any]) -> Problem:
    """Return one problem: the field's dotted path, and the fault."""
    path = [] if item["type"] == "json_invalid" else [str(part) for part in item["loc"]]
    problem = PROBLEMS.get(item["type"]) or str(item["msg"]).removeprefix("Value error, ")
    return Problem(".".join(path)[:MOST_FIELD_CHARACTERS] or "body", problem)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.BAD_REQUEST:
        # FastAPI's error for a body that it cannot parse at all.
        details = [{"field": "body", "problem": "is not valid JSON"}]
        return ErrorResponse(_body("invalid_request", "The request's body is not valid JSON.", details, None), 422)
    code = HTTP_CODES.get(error.status_code, HTTPStatus(error.status_code).phrase.lower().replace(" ", "_"))
    return ErrorResponse(_body(code, f"{error.detail}.", None, None), error.status_code, error.headers)


async def _unexpected_error(request: Request, error: Exception) -> JSONResponse:
    logger.error("request broke", extra={"action": "request_broke"}, exc_info=error)
    # Starlette sends this answer outside all middleware, so its headers are added here.
    headers = security_headers(request.url.path)
    whole = _body("internal_error", "Something went wrong; the log has the details.", None, None)
    return ErrorResponse(whole, 500, headers)
