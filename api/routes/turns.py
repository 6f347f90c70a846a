"""`/api/turns/{turn_id}`: shows what a turn recalled and taught, undoes it, and learns from it again."""

from typing import Annotated

from fastapi import APIRouter, Query

from recollect.api.auth.caller import UserId, WhoCalls
from recollect.api.json_answer import JsonAnswer
from recollect.api.routes.filters import LABELLED
from recollect.api.schemas.answers import EXAMPLE_TURN, LearnAnswer, RehearsalAnswer, UndoAnswer
from recollect.api.schemas.explained_answers import ExplainedTurnAnswer
from recollect.api.schemas.requests import Id, LearnRequest, UndoRequest
from recollect.api.state import OpenMemory
from recollect.memory.values.errors import NotFound

router = APIRouter(tags=["turns"], dependencies=[LABELLED])


@router.get(
    "/api/turns/{turn_id}",
    response_model=None,
    summary="A turn with what it recalled and its update as it is now",
    description=(
        "What was recalled with its scores, what the turn taught, and what was refused and why. With `explain`, "
        "`explained` adds the window, the parts of each hit's score, up to 50 candidates that the search left out and "
        "why, the memory block as it is rebuilt from what is stored now, and the place of each quote in the message."
    ),
    responses={200: {"model": ExplainedTurnAnswer, "content": {"application/json": {"example": EXAMPLE_TURN}}}},
)
async def get_turn(
    turn_id: Id,
    user_id: UserId,
    memory: OpenMemory,
    caller: WhoCalls,
    explain: Annotated[bool, Query(description="Add `explained`: why the turn answered as it did.")] = False,
) -> JsonAnswer:
    """Return the stored turn; an unfinished one says so."""
    turn = await memory.find_turn(user_id=user_id, turn_id=turn_id)
    if turn is None:
        raise NotFound("There is no such turn of this user.")
    shown = turn.explained_json(memory.deferred_steps(user_id, turn_id))
    if explain:
        shown["explained"] = await memory.turns.explain(user_id, turn_id, agent_id=caller.agent_id)
    return JsonAnswer(shown)


@router.post(
    "/api/turns/{turn_id}/undo",
    response_model=None,
    summary="Take back all that a turn taught",
    description=(
        "What it added is undone, what it superseded or deleted is restored. Where facts have changed since, 409 "
        "`facts_changed` names them and nothing is done; with `force` the rest is undone and they are named in `left`."
    ),
    responses={200: {"model": UndoAnswer}},
)
async def undo_turn(
    turn_id: Id,
    user_id: UserId,
    memory: OpenMemory,
    force: Annotated[bool, Query(description="Undo the rest, where facts have changed since.")] = False,
    body: UndoRequest | None = None,
) -> JsonAnswer:
    """Return what was taken back, and what was left."""
    is_forced = force or (body is not None and body.force)
    return JsonAnswer(await memory.turns.undo(user_id, turn_id, force=is_forced))


@router.post(
    "/api/turns/{turn_id}/learn",
    response_model=None,
    summary="Learn from a turn again",
    description=(
        "With another model if named. It adds and updates, and never removes. `dry_run` answers what it would change, "
        "and changes nothing; for 15 minutes its `preview_id` does exactly what was shown, without asking a model "
        "again. 409 `preview_outdated`: it has expired, or would do something else by now; 404: the turn has no such "
        "preview, because a later one took its place."
    ),
    responses={200: {"model": LearnAnswer | RehearsalAnswer}},
)
async def learn_again(turn_id: Id, user_id: UserId, memory: OpenMemory, body: LearnRequest | None = None) -> JsonAnswer:
    """Return the turn's update, or what it would be."""
    wish = body or LearnRequest.model_validate({})
    if wish.preview_id is not None:
        return JsonAnswer(await memory.turns.apply_learning(user_id, turn_id, preview_id=wish.preview_id))
    act = memory.turns.preview_learning if wish.dry_run else memory.turns.learn
    return JsonAnswer(await act(user_id, turn_id, model=wish.model))
