"""Versions of facts and summaries: `ETag` on answers, `If-Match` on edits."""

from typing import Annotated, Any

from fastapi import Depends, Header
from fastapi.responses import JSONResponse

from recollect.memory.values.fact import Fact

MOST_CHARACTERS = 200
IF_MATCH = "The `ETag` of what the edit was made from: where that has changed, 412 `version_changed`."


def _expected(
    if_match: Annotated[str | None, Header(description=IF_MATCH, max_length=MOST_CHARACTERS)] = None,
) -> str | None:
    """Return the version that the request expects; None for any."""
    named = (if_match or "").strip().removeprefix("W/").strip('"')
    return None if named in {"", "*"} else named


ExpectedVersion = Annotated[str | None, Depends(_expected)]


def versioned(shown: dict[str, Any], version: str) -> JSONResponse:
    """Answer with `shown`, and its version as the `ETag`."""
    return JSONResponse(shown, headers={"ETag": f'"{version}"'})


def versioned_fact(fact: Fact) -> JSONResponse:
    """Answer with the fact and its version."""
    return versioned(fact.as_json(), fact.version)
