"""Cursors of lists of threads, and of their messages."""

from datetime import datetime

from recollect.api.routes.pages import bad_cursor, from_cursor, to_cursor
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.scope import check_id
from recollect.memory.values.thread_record import ThreadOverview
from recollect.memory.values.times import from_ms, to_ms


def cursor_after(thread: ThreadOverview) -> str:
    """Return the cursor of the page that follows this thread."""
    return to_cursor(f"{to_ms(thread.last_activity_at)} {thread.thread_id}")


def thread_place(cursor: str | None) -> tuple[datetime, str] | None:
    """Return where the last page ended: the last activity and the id of its last thread.

    Raises:
        InvalidRequest: it is no cursor of a list of threads.
    """
    place = from_cursor(cursor)
    if place is None:
        return None
    at, _, thread_id = place.partition(" ")
    try:
        if _is_number(at):
            return from_ms(int(at)), check_id("thread_id", thread_id)
    except (InvalidRequest, OverflowError):
        raise bad_cursor() from None
    raise bad_cursor()


def message_place(cursor: str | None) -> int | None:
    """Return the position of the last page's last message; None without a cursor.

    Raises:
        InvalidRequest: it is no cursor of a list of messages.
    """
    place = from_cursor(cursor)
    if place is None:
        return None
    if not _is_number(place):
        raise bad_cursor()
    return int(place)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(2**63)) - 1
