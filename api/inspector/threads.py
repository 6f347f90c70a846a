"""`/users/{user_id}/threads`: a user's threads, and one as a conversation."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.page import OpenPage, Page
from recollect.api.inspector.rendering import segment, share
from recollect.api.routes.pages import Cursor, to_cursor
from recollect.api.routes.thread_cursors import cursor_after, message_place, thread_place
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.memory import Memory
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN
from recollect.memory.values.turn import Message

router = APIRouter(prefix="/users/{user_id}/threads")

MOST_THREADS = 25
"""Threads on a page of the list."""
MOST_POSITIONS = 40
"""Positions of a thread on a page of the conversation: 20 turns."""
ThreadId = Annotated[Id, Path()]


@router.get("")
async def show_threads(
    page: OpenPage,
    user_id: PathUser,
    memory: OpenMemory,
    cursor: Cursor = None,
    text: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the list, those last written to first; with `text` only threads that have it."""
    limit, before = MOST_THREADS + 1, thread_place(cursor)
    found = await memory.threads.page(user_id, limit=limit, before=before, text=text or None)
    threads = found[:MOST_THREADS]
    return page.show(
        "threads.html",
        title="Threads",
        threads=threads,
        titles=await memory.threads.titles(user_id, threads),
        text=text,
        following=cursor_after(threads[-1]) if len(found) > len(threads) else None,
        is_first=cursor is None,
    )


@router.get("/{thread_id}")
async def show_thread(
    page: OpenPage, user_id: PathUser, thread_id: ThreadId, memory: OpenMemory, cursor: Cursor = None
) -> Response:
    """Show a page of the conversation, the last one first; the thread's summary, and what can be done with it."""
    return await thread_page(page, memory, Scope(user_id, thread_id), after=message_place(cursor))


@frozen
class LostEdit:
    """A summary that was not stored, because the thread's own had changed since it was shown."""

    text: str
    sentence: str


async def thread_page(
    page: Page, memory: Memory, scope: Scope, *, after: int | None = None, lost: LostEdit | None = None
) -> Response:
    """Return the page of a thread, with the messages behind the position `after`; None: the last ones.

    Raises:
        NotFound: nobody has written to the thread.
    """
    thread = await memory.threads.overview(scope)
    titles = await memory.threads.titles(scope.user_id, [thread])
    begin = _last_page(thread) if after is None else after
    messages = await memory.messages(scope, limit=MOST_POSITIONS, after=begin)
    first = await memory.messages(scope, limit=1)
    end = begin + MOST_POSITIONS
    shown = [message for message in messages if message.position <= end]
    return page.show(
        "thread.html",
        title="Thread",
        status=200 if lost is None else 412,
        thread=thread,
        thread_title=titles[thread.thread_id],
        summary=await memory.threads.summary(scope),
        most_characters=memory.config.summary_tokens * CHARACTERS_PER_TOKEN,
        turns=_turns(shown),
        most=share(message.content for message in shown),
        earlier=to_cursor(str(max(0, begin - MOST_POSITIONS))) if first and first[0].position <= begin else None,
        later=to_cursor(str(end)) if thread.last_position > end else None,
        lost=lost,
    )


def address_of_thread(user_id: str, thread_id: str) -> str:
    """Return the page's address."""
    return f"/users/{segment(user_id)}/threads/{segment(thread_id)}"


def _last_page(thread: ThreadOverview) -> int:
    """Return the position behind which the last page begins; a user's message, which is odd, is its first."""
    return max(0, thread.last_position + thread.last_position % 2 - MOST_POSITIONS)


def _turns(messages: Sequence[Message]) -> list[tuple[str, list[Message]]]:
    """Return the messages by turn, in their order."""
    return [(turn_id, list(said)) for turn_id, said in groupby(messages, lambda message: message.turn_id)]
