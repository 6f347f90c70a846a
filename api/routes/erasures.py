"""`DELETE /api/users/{user_id}`, and the receipts of erasures."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from recollect.api.auth.agent_bounds import check_whole_user
from recollect.api.auth.caller import PathUser, WhoCalls
from recollect.api.schemas.erasure_answers import ErasureAnswer, ReceiptAnswer
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.values.errors import NotFound
from recollect.memory.values.scope import Scope

router = APIRouter(tags=["erasures"])


@router.delete(
    "/api/users/{user_id}",
    response_model=None,
    summary="Erase a user",
    description="Everything of the user's, in every data holder, the user's keys too; then a scan. Turns in flight end "
    "with 409 `user_erased`, later ones start afresh. An unknown user gets zeros. 503 where something cannot be "
    "reached: the erasure goes on by itself, its id is in `details`.",
    responses={200: {"model": ErasureAnswer}},
)
async def delete_user(user_id: PathUser, caller: WhoCalls, memory: OpenMemory) -> JSONResponse:
    """Return the receipt."""
    check_whole_user(caller)
    return JSONResponse((await memory.erasing.erase(Scope(user_id), by=caller.name)).as_json())


@router.get(
    "/api/erasures/{erasure_id}",
    response_model=None,
    summary="The receipt of an erasure",
    description="For administrators, and for whoever erased. It says nothing of whom. While the erasure goes on it is "
    "`pending`, and `remaining` is null for what cannot be reached.",
    responses={200: {"model": ReceiptAnswer}},
)
async def get_erasure(erasure_id: Id, caller: WhoCalls, memory: OpenMemory) -> JSONResponse:
    """404 for somebody else's, too."""
    erasure = await memory.erasing.receipt(erasure_id)
    if erasure is None or not (caller.is_admin or await memory.erasing.is_by(erasure, caller.name)):
        raise NotFound("There is no such erasure.")
    return JSONResponse(erasure.as_json())
