"""Errors in OpenAI's form, for every path under /v1: {"error": {"message", "type", "param", "code"}}."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

PREFIX = "/v1"
"""The prefix of the paths for OpenAI's clients."""
TYPES: Mapping[int, str] = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
PARAMS: Mapping[str, str] = {"model_not_found": "model", "turn_conflict": "Idempotency-Key"}
"""The `param` of errors that name no field themselves."""
_PLACE = re.compile(r"\.(\d+)(?=\.|$)")


class OpenAIErrorContent(BaseModel):
    """What went wrong, as OpenAI's clients read it."""

    message: str = Field(description="A sentence.")
    type: str = Field(description="invalid_request_error, authentication_error, …, server_error.")
    param: str | None = Field(description="The field that is wrong, such as messages[0].content.")
    code: str | None = Field(description="Stable, such as model_not_found.")


class OpenAIErrorAnswer(BaseModel):
    """An error."""

    error: OpenAIErrorContent


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": OpenAIErrorAnswer, "description": "See `error.code`; 400 names the field in `error.param`."},
    "5XX": {"model": OpenAIErrorAnswer, "description": "See `error.code`."},
}


def is_openais(path: str) -> bool:
    """Tell whether errors of this path have OpenAI's form."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def in_openais_form(whole: Mapping[str, Any], status: int) -> tuple[dict[str, Any], int]:
    """Return an error of the contract (`{"error": {…}}`) in OpenAI's form, and its status: 422 becomes 400 here."""
    error = whole["error"]
    field, problem = _first(error)
    message = f"{param_of(field)} {problem}." if field else error["message"]
    status = 400 if status == 422 else status
    shown = {
        "message": message,
        "type": TYPES.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "param": param_of(field) if field else PARAMS.get(error["code"]),
        "code": error["code"],
    }
    return {"error": shown}, status


def param_of(field: str) -> str:
    """Return a field's path as OpenAI writes it: messages.0.content is messages[0].content."""
    return _PLACE.sub(r"[\1]", field)


def _first(error: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the first field that an invalid request names, and its fault."""
    for detail in error.get("details") or ():
        if "field" in detail:
            return detail["field"], detail["problem"]
    return None, ""
