"""`POST /api/exchanges`."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.schemas.answers import ExchangesAnswer, TurnAnswer
from recollect.api.schemas.requests import ExchangeRequest, Exchanges
from recollect.api.state import OpenMemory
from recollect.memory.exchanges.given_exchange import check_exchanges
from recollect.memory.exchanges.storing import store_exchange
from recollect.memory.memory import Memory
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn

router = APIRouter(tags=["agent"])


@router.post(
    "/api/exchanges",
    response_model=None,
    summary="Store what an agent elsewhere and its user said",
    description=(
        "Stored, indexed and learned from as an own turn, behind the thread's newest. Of `messages`, the further ones "
        "of the turn, only the user's are evidence for facts. An array of 1 to 100 is checked whole, then stored in "
        "its order: the answer is `items`. The same `turn_id` again returns the stored turn."
    ),
    responses={200: {"model": TurnAnswer | ExchangesAnswer}},
)
async def store_exchanges(body: Exchanges, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Store one exchange or several, and return their turns."""
    bodies, places = (body, [f"{at}." for at in range(len(body))]) if isinstance(body, list) else ([body], [""])
    scopes = [
        Scope(caller.acts_for(one.user_id, field=f"{place}user_id"), one.thread_id)
        for place, one in zip(places, bodies, strict=True)
    ]
    bodies = [
        one.model_copy(update={"agent_id": caller.label(one.agent_id, field=f"{place}agent_id")})
        for place, one in zip(places, bodies, strict=True)
    ]
    check_exchanges(memory.config, [(place, one.given()) for place, one in zip(places, bodies, strict=True)])
    turns = await _stored(memory, bodies, scopes, caller.agent_id)
    shown = [turn.explained_json(memory.deferred_steps(*_ids(turn))) for turn in turns]
    return JSONResponse({"items": shown} if isinstance(body, list) else shown[0])


async def _stored(
    memory: Memory, bodies: Sequence[ExchangeRequest], scopes: Sequence[Scope], agent_id: str | None
) -> list[Turn]:
    """Store the exchanges one after another, then wait for those whose bodies ask for it."""
    pairs = zip(scopes, bodies, strict=True)
    turns = [await store_exchange(memory, scope, body.given(), agent_id=agent_id) for scope, body in pairs]
    waits = [memory.learned(turn) for turn, body in zip(turns, bodies, strict=True) if body.wait_for_memory]
    learned = {_ids(turn): turn for turn in await asyncio.gather(*waits)}
    return [learned.get(_ids(turn), turn) for turn in turns]


def _ids(turn: Turn) -> tuple[str, str]:
    return turn.message.user_id, turn.message.turn_id
