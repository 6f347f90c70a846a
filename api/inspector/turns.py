"""`/users/{user_id}/turns/{turn_id}`: why a turn answered as it did, and what it taught."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.marked_text import MarkedPiece, Place, pieces_of
from recollect.api.inspector.page import OpenPage
from recollect.api.inspector.rendering import FOLDS_AFTER, segment
from recollect.api.inspector.score_bars import bars_of, most_of
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.memory import Memory
from recollect.memory.values.errors import NotFound
from recollect.memory.values.turn import Turn

router = APIRouter(prefix="/users/{user_id}/turns/{turn_id}")

TurnId = Annotated[Id, Path()]
Json = dict[str, Any]


@router.get("")
async def show_turn(page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory) -> Response:
    """Show the page; its part `why` alone, for the conversation that it opens in."""
    turn = await stored_turn(memory, user_id, turn_id)
    thread = await memory.threads.overview(turn.message.scope)
    return page.show(
        "turn.html",
        part="why",
        title="Why",
        turn=turn.explained_json(memory.deferred_steps(user_id, turn_id)),
        reply=turn.reply,
        is_last=turn.message.position + 1 >= thread.last_position,
        **explained(await memory.turns.explain(user_id, turn_id)),
    )


async def stored_turn(memory: Memory, user_id: str, turn_id: str) -> Turn:
    """Return the turn.

    Raises:
        NotFound: the user has no such turn.
    """
    turn = await memory.find_turn(user_id=user_id, turn_id=turn_id)
    if turn is None:
        raise NotFound("There is no such turn of this user.")
    return turn


def address_of_turn(user_id: str, turn_id: str) -> str:
    """Return the page's address."""
    return f"/users/{segment(user_id)}/turns/{segment(turn_id)}"


def explained(why: Json) -> Json:
    """Return an explained turn as the template's variables `why`, `said`, `more_said`, `bars` and `left_out_bars`."""
    text: str = why["message"]["content"]
    places = list(_places(why))
    left_out: list[Json] = why["left_out"]["items"] if why["left_out"] else []
    parts: list[Json | None] = [hit["parts"] for hit in why["hits"]]
    scores: list[Json] = [one["scores"] for one in left_out]
    most = most_of([*parts, *scores])
    return {
        "why": why,
        "said": pieces_of(text[:FOLDS_AFTER], places),
        "more_said": _folded(text, places),
        "bars": [bars_of(one, most) for one in parts],
        "left_out_bars": [bars_of(one, most) for one in scores],
    }


def _places(why: Json) -> Iterator[Place]:
    """Yield the places of the quotes that something was learned from."""
    for change in why["taught"]:
        if change["quote"] is not None:
            yield change["quote"]["start"], change["quote"]["end"]


def _folded(text: str, places: Sequence[Place]) -> Sequence[MarkedPiece]:
    """Return the pieces of the text behind what is shown at once."""
    behind = [(start - FOLDS_AFTER, end - FOLDS_AFTER) for start, end in places]
    return pieces_of(text[FOLDS_AFTER:], behind)
