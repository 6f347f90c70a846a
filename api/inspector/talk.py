"""`/users/{user_id}/talk`: the page "Talk": a thread's last turns, and the form that adds one."""

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Form, Query
from fastapi.responses import Response, StreamingResponse

from recollect.api.auth.caller import PathUser
from recollect.api.errors import error_body, status_of
from recollect.api.inspector.page import OpenPage, Page
from recollect.api.inspector.rendering import segment
from recollect.api.inspector.talk_stream import stream_talk
from recollect.api.inspector.talk_turn import BLANK, share_of, turn_fields
from recollect.api.inspector.talk_words import Words, turn_request
from recollect.api.inspector.turns import TurnId, address_of_turn, stored_turn
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory, OpenTurns
from recollect.memory.memory import Memory
from recollect.memory.values.errors import RecollectError, StoreUnavailable, TurnConflict
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/users/{user_id}/talk")

MOST_TURNS = 10
"""How many turns the page shows; the thread's own page has all."""
MOST_THREADS = 20
OFFLINE = "offline"
"""The name of the built-in model, which the page explains to those who can set another."""
LEARN_SECONDS = 2.0
"""How long the answer to a form waits for what the turn teaches; the page shows a later one when it is loaded again."""
WATCH_SECONDS = 5.0
"""How long one request of an open page waits for a turn's update: a stopping service waits for such requests."""


@router.get("")
async def show_talk(
    page: OpenPage, user_id: PathUser, memory: OpenMemory, thread: Annotated[Id | None, Query()] = None
) -> Response:
    """Show a thread; without `thread` a new one."""
    words = Words(thread_id=thread or str(uuid4()), turn_id=str(uuid4()))
    return await _show(page, memory, user_id, words)


@router.post("")
async def talk(
    page: OpenPage, user_id: PathUser, memory: OpenMemory, turns: OpenTurns, words: Annotated[Words, Form()]
) -> Response:
    """Run a turn and lead to it; where it fails, show the page with the error and the words that were typed."""
    words = words.without_returns()
    try:
        running = turns.start(await turn_request(memory, user_id, words))
        await running.acceptance()
        turn = await running.outcome()
        await memory.ended(user_id=user_id, turn_id=turn.message.turn_id, seconds=LEARN_SECONDS)
    except RecollectError as error:
        return await _show(page, memory, user_id, words, error)
    return page.lead(f"{_address(user_id, turn.message.thread_id)}#turn-{segment(turn.message.turn_id)}")


@router.post("/stream")
async def stream(
    page: OpenPage, user_id: PathUser, memory: OpenMemory, turns: OpenTurns, words: Words
) -> StreamingResponse:
    """Run a turn and stream it to an open page."""
    running = turns.start(await turn_request(memory, user_id, words, wants_tokens=True))
    await running.acceptance()
    return stream_talk(memory, running)


@router.get("/turns/{turn_id}")
async def show_turn(
    page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory, wait: bool = False
) -> Response:
    """Show one turn to an open page; with `wait`, once its update has ended or after a few seconds."""
    if not page.is_partial:
        return page.lead(address_of_turn(user_id, turn_id))
    turn = await stored_turn(memory, user_id, turn_id)
    if wait and turn.reply is not None:
        await memory.ended(user_id=user_id, turn_id=turn_id, seconds=WATCH_SECONDS)
        turn = await stored_turn(memory, user_id, turn_id)
    shown = turn_fields(memory, turn)
    return page.show("talk_turn.html", title="Talk", turn=shown, most=share_of([shown]))


async def _show(
    page: Page, memory: Memory, user_id: str, words: Words, error: RecollectError | None = None
) -> Response:
    """Show the page with the words that are still to be sent."""
    if isinstance(error, TurnConflict):
        words = words.model_copy(update={"turn_id": str(uuid4())})  # other words than those that were sent under it
    try:
        turns = await memory.threads.latest(Scope(user_id, words.thread_id), limit=MOST_TURNS)
        threads = await memory.threads.page(user_id, limit=MOST_THREADS)
        titles = await memory.threads.titles(user_id, threads)
    except StoreUnavailable:
        if error is None:
            raise
        turns, threads, titles = [], [], dict[str, str]()
    shown = [turn_fields(memory, turn) for turn in turns]
    return page.show(
        "talk.html",
        status=200 if error is None else status_of(error),
        title="Talk",
        words=words,
        error=None if error is None else error_body(error)["error"],
        turns=shown,
        most=share_of(shown),
        blank=BLANK,
        is_offline=page.caller.is_admin and memory.chat.name == OFFLINE,
        threads=threads,
        titles=titles,
    )


def _address(user_id: str, thread_id: str) -> str:
    return f"/users/{segment(user_id)}/talk?thread={segment(thread_id)}"
