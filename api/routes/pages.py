"""Pages of lists: `?limit=1..200&cursor=` in, `items` and `next_cursor` out. A cursor is opaque to the caller."""

import base64
import binascii
from typing import Annotated

from fastapi import Query

from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.scope import is_uuid

Limit = Annotated[int, Query(ge=1, le=200, description="Most items of this page.")]
Cursor = Annotated[str | None, Query(description="The last page's `next_cursor`.", max_length=500)]


def to_cursor(place: str) -> str:
    """Return the cursor of a place in a list."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def from_cursor(cursor: str | None) -> str | None:
    """Return the place that a cursor means; None for none.

    Raises:
        InvalidRequest: it is no cursor of ours.
    """
    if not cursor:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise bad_cursor() from None


def fact_of_cursor(cursor: str | None) -> str | None:
    """Return the id of the fact that a cursor means; None for none.

    Raises:
        InvalidRequest: it is no cursor of ours.
    """
    place = from_cursor(cursor)
    if place is not None and not is_uuid(place):
        raise bad_cursor()
    return place


def bad_cursor() -> InvalidRequest:
    """Return the error for a cursor that this list never issued."""
    return InvalidRequest(
        "The cursor is not one of this list; start without one.", problems=[Problem("cursor", "is not a cursor")]
    )
