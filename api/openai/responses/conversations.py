"""`/v1/conversations`: threads, as OpenAI's clients make, read and delete them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, Path
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from recollect.api.auth.caller import Caller, WhoCalls
from recollect.api.openai.responses.answers import (
    ConversationAnswer,
    DeletedConversationAnswer,
    ItemAnswer,
    ItemsAnswer,
)
from recollect.api.openai.responses.given_items import MOST_ITEMS, given_exchanges
from recollect.api.openai.responses.pages import After, Limit, Order, page, page_of
from recollect.api.openai.responses.requests import Metadata, Objects
from recollect.api.openai.responses.seen_conversation import SeenConversation, record_id
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
from recollect.memory.values.turn import Exchange, Turn

router = APIRouter(prefix="/v1", tags=["openai"])


async def _named(conversation_id: Id, user_id: NamedUser, memory: OpenMemory, caller: WhoCalls) -> SeenConversation:
    return SeenConversation(memory, Scope(user_id, conversation_id), caller)


Named = Annotated[SeenConversation, Depends(_named)]
"""The conversation in the path, as the caller sees it."""

Json = dict[str, Any]
NO_ITEM = "There is no such message in this conversation of this user."


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
    user_id: NamedUser, memory: OpenMemory, caller: WhoCalls, body: ConversationRequest | None = None
) -> JSONResponse:
    """Make it under a new id."""
    wish = body or ConversationRequest.model_validate({})
    given = _given(memory, wish.items or (), caller)
    thread_id = f"conv_{uuid4().hex}"
    label = caller.label()
    content = {"metadata": dict(wish.metadata or {}), **({} if label is None else {"agent_id": label})}
    record = ClientRecord(user_id, thread_id, record_id(thread_id), "conversation", memory.now(), None, content)
    await memory.client_records.insert(record)
    await _store(memory, record.scope, given)
    return JSONResponse(_shown(record))


@router.get(
    "/conversations/{conversation_id}",
    response_model=None,
    summary="A conversation",
    responses={200: {"model": ConversationAnswer}, **RESPONSES},
)
async def get_conversation(conversation: Named) -> JSONResponse:
    """404 for one that nobody made or wrote to."""
    return JSONResponse(_shown(await conversation.record()))


@router.delete(
    "/conversations/{conversation_id}",
    response_model=None,
    summary="Delete a conversation",
    description="Its thread with all its messages, and what its turns taught; 409 `update_pending` while one of them "
    "is being learned from.",
    responses={200: {"model": DeletedConversationAnswer}, **RESPONSES},
)
async def delete_conversation(conversation: Named, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """404 for one that nobody made or wrote to."""
    await conversation.check_whole()
    await memory.deleting.take_back_all(conversation.scope)
    await memory.threads.delete(conversation.scope, by=caller.name)
    return JSONResponse({"id": conversation.scope.thread, "object": "conversation.deleted", "deleted": True})


@router.get(
    "/conversations/{conversation_id}/items",
    response_model=None,
    summary="The messages of a conversation",
    description="Those of finished turns.",
    responses={200: {"model": ItemsAnswer}, **RESPONSES},
)
async def get_items(conversation: Named, limit: Limit = 20, order: Order = "desc", after: After = None) -> JSONResponse:
    """One page."""
    await conversation.record()
    turn = None if after is None else await conversation.turn_of(after)
    position = None if turn is None else turn.message.position
    # Two turns more than asked for: one may be that of `after`, one tells whether there is another page.
    most, found = limit + 2, list[Exchange]()
    if after is None or position is not None:
        read = conversation.forwards if order == "asc" else conversation.backwards
        found = await read(position, most)
    items = messages_items([message for exchange in found for message in exchange.messages])
    return JSONResponse(page_of(items, limit=limit, order=order, after=after))


@router.post(
    "/conversations/{conversation_id}/items",
    response_model=None,
    summary="Add messages to a conversation",
    description="Each message of the user, with the assistant's answer behind it, is a turn, which is learned from.",
    responses={200: {"model": ItemsAnswer}, **RESPONSES},
)
async def create_items(conversation: Named, memory: OpenMemory, caller: WhoCalls, body: ItemsRequest) -> JSONResponse:
    """404 for a conversation that nobody made or wrote to."""
    await conversation.record()
    turns = await _store(memory, conversation.scope, _given(memory, body.items, caller))
    items = messages_items([message for turn in turns for message in turn.messages])
    return JSONResponse(page(items, has_more=False))


@router.get(
    "/conversations/{conversation_id}/items/{item_id}",
    response_model=None,
    summary="A message of a conversation",
    responses={200: {"model": ItemAnswer}, **RESPONSES},
)
async def get_item(
    conversation: Named,
    item_id: Annotated[str, Path(max_length=200, description="Its id, as the list of items has it.")],
) -> JSONResponse:
    """404 where the conversation has no such message."""
    turn = await conversation.turn_of(item_id)
    items = messages_items(turn.messages) if turn is not None and turn.reply is not None else []
    found = next((item for item in items if item["id"] == item_id), None)
    if found is None:
        raise NotFound(NO_ITEM)
    return JSONResponse(found)


def _given(memory: Memory, items: Sequence[Mapping[str, Any]], caller: Caller) -> list[GivenExchange]:
    """Return the items as exchanges of the caller's own agent, checked before anything is stored."""
    config = memory.config
    most = min(config.max_message_characters, config.max_reply_characters)
    given = given_exchanges(items, now=memory.now(), most=most)
    return [replace(one, agent_id=caller.label()) for one in given]


async def _store(memory: Memory, scope: Scope, given: Sequence[GivenExchange]) -> list[Turn]:
    return [await store_exchange(memory, scope, one, agent_id=one.agent_id) for one in given]


def _shown(record: ClientRecord) -> Json:
    metadata: Mapping[str, str] = record.content.get("metadata") or {}
    return {
        "id": record.thread_id,
        "object": "conversation",
        "created_at": int(record.created_at.timestamp()),
        "metadata": dict(metadata),
    }
