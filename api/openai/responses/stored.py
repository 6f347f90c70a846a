"""`/v1/responses/{id}`: reads and deletes kept responses."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from fastapi.responses import JSONResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.openai.responses.answers import DeletedResponseAnswer, ItemsAnswer, ResponseAnswer
from recollect.api.openai.responses.ids import response_id
from recollect.api.openai.responses.kept import KeptResponses, rounds_of
from recollect.api.openai.responses.pages import After, Limit, Order, page_of
from recollect.api.openai.responses.shapes import begun, ended, round_items, user_item
from recollect.api.openai.responses.whose import NamedUser
from recollect.api.openai_errors import RESPONSES
from recollect.api.state import OpenMemory
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.values.errors import NotFound
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import not_owed

router = APIRouter(prefix="/v1", tags=["openai"])

Json = dict[str, Any]
ResponseId = Annotated[str, Path(max_length=200, description="Its id, as the response has it.")]
NO_RESPONSE = "There is no such response of this user."
ELSEWHERE: Mapping[str, Any] = {
    "instructions": None,
    "previous_response_id": None,
    "conversation": None,
    "temperature": None,
    "top_p": None,
    "max_output_tokens": None,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "text": {"format": {"type": "text"}},
    "reasoning": None,
    "truncation": "disabled",
}
"""The settings of a turn that was asked for at another door."""


async def _responses(user_id: NamedUser, memory: OpenMemory, caller: WhoCalls) -> KeptResponses:
    return KeptResponses(memory, user_id, caller.agent_id)


Responses = Annotated[KeptResponses, Depends(_responses)]
"""The user's responses, as the caller sees them."""
OWN = frozenset({"items", "rounds"})
"""Fields that are kept with a response and not shown."""


@router.get(
    "/responses/{response_id}",
    response_model=None,
    summary="A response that is kept",
    description="A turn with its answer, or for 24 hours a response that ended in calls of the client's functions.",
    responses={200: {"model": ResponseAnswer}, **RESPONSES},
)
async def get_response(response_id: ResponseId, responses: Responses) -> JSONResponse:
    """404 where the user has none of this id."""
    return JSONResponse(_shown(await _kept(responses, response_id)))


@router.delete(
    "/responses/{response_id}",
    response_model=None,
    summary="Delete a response",
    description="Its turn's messages and what the turn taught; 409 `update_pending` while it is being learned from.",
    responses={200: {"model": DeletedResponseAnswer}, **RESPONSES},
)
async def delete_response(response_id: ResponseId, responses: Responses) -> JSONResponse:
    """404 where the user has none of this id."""
    kept = await _kept(responses, response_id)
    memory, user_id = responses.memory, responses.user_id
    if isinstance(kept, Turn):
        await memory.deleting.delete(user_id, kept.message.turn_id)
    else:
        await memory.client_records.remove(user_id=user_id, record_id=kept.id)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


@router.get(
    "/responses/{response_id}/input_items",
    response_model=None,
    summary="The items that a response answers",
    description="The user's message, and the calls and results that followed it.",
    responses={200: {"model": ItemsAnswer}, **RESPONSES},
)
async def get_input_items(
    response_id: ResponseId,
    responses: Responses,
    limit: Limit = 20,
    order: Order = "desc",
    after: After = None,
) -> JSONResponse:
    """One page."""
    kept = await _kept(responses, response_id)
    if isinstance(kept, Turn):
        items = [user_item(kept.message.turn_id, kept.message.content), *rounds_of(kept)]
    else:
        response: Mapping[str, Any] = kept.content["response"] or {}
        rounds = round_items(kept.id, response.get("rounds", ()), response.get("items", {}))
        items = [user_item(kept.id, kept.content["message"]), *rounds]
    return JSONResponse(page_of(items, limit=limit, order=order, after=after))


async def _kept(responses: KeptResponses, given: str) -> Turn | ClientRecord:
    kept = await responses.named(given)
    if kept is None:
        raise NotFound(NO_RESPONSE)
    return kept


def _shown(kept: Turn | ClientRecord) -> Json:
    turn = kept if isinstance(kept, Turn) else _unstored(kept)
    message, result = turn.message, turn.result or {}
    response: Mapping[str, Any] = result.get("response") or {}
    settings = {**ELSEWHERE, **{name: value for name, value in response.items() if name not in OWN}}
    model = result.get("model") or ""
    at = int(message.created_at.timestamp())
    shown = ended(begun(message.turn_id, settings, _texts(message.metadata), model=model, at=at), turn, message.turn_id)
    is_stored = isinstance(kept, Turn)
    memory = {
        "stored": is_stored,
        "user_id": message.user_id,
        "thread_id": message.thread_id,
        "turn_id": message.turn_id if is_stored else None,
        "reason": None,
    }
    return {**shown, "id": response_id(message.turn_id), "memory": memory, "memory_hits": []}


def _unstored(record: ClientRecord) -> Turn:
    """Return an open round as the turn that it would have been."""
    content = record.content
    whose = (record.user_id, record.thread_id, record.id)
    message = Message(*whose, "user", content["message"], record.created_at, metadata=content["metadata"])
    reply = Message(*whose, "assistant", content["text"], record.created_at)
    result = {name: content[name] for name in ("model", "usage", "tool_calls", "response")}
    return Turn(message, reply, result, not_owed("not stored"))


def _texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the metadata that are texts: a turn of another door may have any JSON."""
    return {name: value for name, value in metadata.items() if isinstance(value, str)}
