"""`/v1/conversations`: threads, as OpenAI's clients make, read and delete them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from recollect.api.auth.caller import WhoCalls
from recollect.api.openai.responses.answers import (
    ConversationAnswer,
    DeletedConversationAnswer,
    ItemAnswer,
    ItemsAnswer,
)
from recollect.api.openai.responses.given_items import MOST_ITEMS, given_exchanges
from recollect.api.openai.responses.ids import turn_of_answer, turn_of_further, turn_of_input
from recollect.api.openai.responses.pages import After, Limit, Order, page, page_of
from recollect.api.openai.responses.requests import Metadata, Objects
from recollect.api.openai.responses.shapes import messages_items
from recollect.api.openai.responses.whose import NamedUser
from recollect.api.openai_errors import RESPONSES
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.exchanges.given_exchange import GivenExchange
from recollect.memory.exchanges.storing import store_exchange
from recollect.memory.memory import Memory
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.values.errors import NotFound
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn

router = APIRouter(prefix="/v1", tags=["openai"])

Json = dict[str, Any]
NO_ITEM = "There is no such message in this conversation of this user."
NO_CONVERSATION = "There is no such conversation of this user."


class ConversationRequest(BaseModel):
    """A conversation that is made by hand. A response makes one at its first use too."""

    model_config = ConfigDict(extra="ignore")

    metadata: Metadata | None = Field(None, description="Up to 16 pairs of texts.")
    items: Annotated[Objects, Field(max_length=MOST_ITEMS)] | None = Field(
        None, description="Its first messages, up to 20; their users' words are learned from."
    )


class ItemsRequest(BaseModel):
    """Messages that are added to a conversation."""

    model_config = ConfigDict(extra="ignore")

    items: Annotated[Objects, Field(min_length=1, max_length=MOST_ITEMS)] = Field(
        description="Messages of the user, the assistant and the system, up to 20."
    )


@router.post(
    "/conversations",
    response_model=None,
    summary="Make a conversation",
    description="Responses that name it in `conversation` are turns of the thread with its id.",
    responses={200: {"model": ConversationAnswer}, **RESPONSES},
)
async def create_conversation(
    user_id: NamedUser, memory: OpenMemory, body: ConversationRequest | None = None
) -> JSONResponse:
    """Make it under a new id."""
    wish = body or ConversationRequest.model_validate({})
    given = _given(memory, wish.items or ())
    thread_id = f"conv_{uuid4().hex}"
    content = {"metadata": dict(wish.metadata or {})}
    record = ClientRecord(user_id, thread_id, _record_id(thread_id), "conversation", memory.now(), None, content)
    await memory.client_records.insert(record)
    await _store(memory, record.scope, given)
    return JSONResponse(_shown(record))


@router.get(
    "/conversations/{conversation_id}",
    response_model=None,
    summary="A conversation",
    responses={200: {"model": ConversationAnswer}, **RESPONSES},
)
async def get_conversation(conversation_id: Id, user_id: NamedUser, memory: OpenMemory) -> JSONResponse:
    """404 for one that nobody made or wrote to."""
    return JSONResponse(_shown(await _conversation(memory, Scope(user_id, conversation_id))))


@router.delete(
    "/conversations/{conversation_id}",
    response_model=None,
    summary="Delete a conversation",
    description="Its thread with all its messages, and what its turns taught; 409 `update_pending` while one of them "
    "is being learned from.",
    responses={200: {"model": DeletedConversationAnswer}, **RESPONSES},
)
async def delete_conversation(
    conversation_id: Id, user_id: NamedUser, caller: WhoCalls, memory: OpenMemory
) -> JSONResponse:
    """404 for one that nobody made or wrote to."""
    scope = Scope(user_id, conversation_id)
    await _conversation(memory, scope)
    await memory.deleting.take_back_all(scope)
    await memory.threads.delete(scope, by=caller.name)
    return JSONResponse({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


@router.get(
    "/conversations/{conversation_id}/items",
    response_model=None,
    summary="The messages of a conversation",
    description="Those of finished turns.",
    responses={200: {"model": ItemsAnswer}, **RESPONSES},
)
async def get_items(
    conversation_id: Id,
    user_id: NamedUser,
    memory: OpenMemory,
    limit: Limit = 20,
    order: Order = "desc",
    after: After = None,
) -> JSONResponse:
    """One page."""
    scope = Scope(user_id, conversation_id)
    await _conversation(memory, scope)
    position = await _position(memory, scope, after)
    # Two turns more than asked for: one may be that of `after`, one tells whether there is another page.
    most = limit + 2
    if after is not None and position is None:
        found = []
    elif order == "asc":
        found = await memory.exchanges(scope, after=(position or 0) - 2, limit=most)
    else:
        found = await memory.recent(scope, limit=most, before=None if position is None else position + 2)
    items = messages_items([message for exchange in found for message in exchange.messages])
    return JSONResponse(page_of(items, limit=limit, order=order, after=after))


@router.post(
    "/conversations/{conversation_id}/items",
    response_model=None,
    summary="Add messages to a conversation",
    description="Each message of the user, with the assistant's answer behind it, is a turn, which is learned from.",
    responses={200: {"model": ItemsAnswer}, **RESPONSES},
)
async def create_items(conversation_id: Id, user_id: NamedUser, memory: OpenMemory, body: ItemsRequest) -> JSONResponse:
    """404 for a conversation that nobody made or wrote to."""
    scope = Scope(user_id, conversation_id)
    await _conversation(memory, scope)
    turns = await _store(memory, scope, _given(memory, body.items))
    items = messages_items([message for turn in turns for message in turn.messages])
    return JSONResponse(page(items, has_more=False))


@router.get(
    "/conversations/{conversation_id}/items/{item_id}",
    response_model=None,
    summary="A message of a conversation",
    responses={200: {"model": ItemAnswer}, **RESPONSES},
)
async def get_item(
    conversation_id: Id,
    item_id: Annotated[str, Path(max_length=200, description="Its id, as the list of items has it.")],
    user_id: NamedUser,
    memory: OpenMemory,
) -> JSONResponse:
    """404 where the conversation has no such message."""
    turn = await _turn_of(memory, Scope(user_id, conversation_id), item_id)
    items = messages_items(turn.messages) if turn is not None and turn.reply is not None else []
    found = next((item for item in items if item["id"] == item_id), None)
    if found is None:
        raise NotFound(NO_ITEM)
    return JSONResponse(found)


def _given(memory: Memory, items: Sequence[Mapping[str, Any]]) -> list[GivenExchange]:
    """Return the items as exchanges, checked before anything is stored."""
    config = memory.config
    most = min(config.max_message_characters, config.max_reply_characters)
    return given_exchanges(items, now=memory.now(), most=most)


async def _store(memory: Memory, scope: Scope, given: Sequence[GivenExchange]) -> list[Turn]:
    return [await store_exchange(memory, scope, one) for one in given]


async def _conversation(memory: Memory, scope: Scope) -> ClientRecord:
    """Return the record of the conversation; one as it would be, where only turns made it."""
    record_id = _record_id(scope.thread)
    record = await memory.client_records.record(user_id=scope.user_id, record_id=record_id)
    if record is not None:
        return record
    first = await memory.messages(scope, limit=1)
    if not first:
        raise NotFound(NO_CONVERSATION)
    return ClientRecord(scope.user_id, scope.thread, record_id, "conversation", first[0].created_at)


async def _position(memory: Memory, scope: Scope, after: str | None) -> int | None:
    """Return the position of the turn that the item `after` belongs to."""
    turn = None if after is None else await _turn_of(memory, scope, after)
    return None if turn is None else turn.message.position


async def _turn_of(memory: Memory, scope: Scope, item_id: str) -> Turn | None:
    """Return the turn of the conversation that the item belongs to."""
    turn_id = turn_of_answer(item_id) or turn_of_input(item_id) or turn_of_further(item_id)
    turn = None if turn_id is None else await memory.find_turn(user_id=scope.user_id, turn_id=turn_id)
    return turn if turn is not None and turn.message.thread_id == scope.thread else None


def _record_id(thread_id: str) -> str:
    """Return the id of a conversation's record: no turn's id holds a slash."""
    return f"conversation/{thread_id}"


def _shown(record: ClientRecord) -> Json:
    metadata: Mapping[str, str] = record.content.get("metadata") or {}
    return {
        "id": record.thread_id,
        "object": "conversation",
        "created_at": int(record.created_at.timestamp()),
        "metadata": dict(metadata),
    }
