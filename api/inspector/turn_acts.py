"""A person's acts on a turn: undo what it taught, learn from it again, regenerate its reply."""

from typing import Annotated, Any

from fastapi import APIRouter, Form
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.page import OpenPage
from recollect.api.inspector.turns import TurnId, address_of_turn, stored_turn
from recollect.api.routes.regenerate import RegenerateRequest, request_again
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory, OpenTurns
from recollect.memory.values.errors import FactsChanged, PreviewOutdated

router = APIRouter(prefix="/users/{user_id}/turns/{turn_id}")


@router.get("/undo")
async def ask_undo(page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory) -> Response:
    """Show what the undo would take back."""
    turn = await stored_turn(memory, user_id, turn_id)
    changes = turn.update.changes if turn.update is not None else ()
    return page.show(
        "undo.html", part="confirm", title="Undo what a turn taught", turn_id=turn_id, changes=changes, error=None
    )


@router.post("/undo")
async def undo(
    page: OpenPage,
    user_id: PathUser,
    turn_id: TurnId,
    memory: OpenMemory,
    force: Annotated[bool, Form()] = False,
) -> Response:
    """Undo the turn; where facts have changed since, show which, and offer to undo the rest."""
    try:
        await memory.turns.undo(user_id, turn_id, force=force)
    except FactsChanged as error:
        return page.show("undo.html", status=409, title="Facts have changed since", turn_id=turn_id, error=error)
    return page.lead(address_of_turn(user_id, turn_id))


@router.get("/learn")
async def ask_learn(page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory) -> Response:
    """Ask before a model is asked about the turn again."""
    await stored_turn(memory, user_id, turn_id)
    return _learn_page(page, turn_id)


@router.post("/learn/preview")
async def preview_learning(page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory) -> Response:
    """Show what learning from the turn again would change."""
    return _learn_page(page, turn_id, preview=await memory.turns.preview_learning(user_id, turn_id))


@router.post("/learn")
async def apply_learning(
    page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory, preview_id: Annotated[Id, Form()]
) -> Response:
    """Do what was shown; where that has changed, say so, and offer the difference of now."""
    try:
        await memory.turns.apply_learning(user_id, turn_id, preview_id=preview_id)
    except PreviewOutdated as error:
        return _learn_page(page, turn_id, error=error, status=409)
    return page.lead(address_of_turn(user_id, turn_id))


def _learn_page(
    page: OpenPage,
    turn_id: str,
    *,
    preview: dict[str, Any] | None = None,
    error: PreviewOutdated | None = None,
    status: int = 200,
) -> Response:
    return page.show(
        "learn.html",
        part="confirm",
        status=status,
        title="Learn from a turn again",
        turn_id=turn_id,
        preview=preview,
        error=error,
    )


@router.get("/regenerate")
async def ask_regenerate(page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory) -> Response:
    """Ask before the reply is made anew."""
    await stored_turn(memory, user_id, turn_id)
    return page.show("regenerate.html", part="confirm", title="Regenerate the reply", turn_id=turn_id)


@router.post("/regenerate")
async def regenerate(
    page: OpenPage, user_id: PathUser, turn_id: TurnId, memory: OpenMemory, turns: OpenTurns
) -> Response:
    """Regenerate the reply of a thread's last turn, and wait for the new one."""
    stored = await stored_turn(memory, user_id, turn_id)
    running = turns.start(request_again(stored, RegenerateRequest.model_validate({})))
    await running.acceptance()
    await running.outcome()
    return page.lead(address_of_turn(user_id, turn_id))
