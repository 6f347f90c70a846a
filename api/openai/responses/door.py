"""`POST /v1/responses`: the agent for clients that speak OpenAI's Responses."""

import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.auth.whose import Whose
from recollect.api.openai.callers import callers_key, callers_own, check_model, wrong
from recollect.api.openai.fate import remembered, stored_header, whole_or_streamed
from recollect.api.openai.identity import thread_of, user_of_request
from recollect.api.openai.keeping import keeping_of
from recollect.api.openai.memory_fields import ChatHeaders, label_of, memory_options
from recollect.api.openai.messages import ClientMessages, split_messages
from recollect.api.openai.responses.answers import ResponseAnswer
from recollect.api.openai.responses.kept import KeptResponses
from recollect.api.openai.responses.place import Place, find_place
from recollect.api.openai.responses.requests import ResponseRequest
from recollect.api.openai.responses.shapes import begun, ended, kept_settings, settings_of
from recollect.api.openai.responses.stream import ResponseStream
from recollect.api.openai.responses.tools import chat_parameters, chat_tools
from recollect.api.openai_errors import RESPONSES
from recollect.api.state import OpenServices, OpenTurns
from recollect.graph.client_chat import ClientChat
from recollect.graph.past import continued, read_until
from recollect.graph.running_turn import TurnRequest
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/v1", tags=["openai"])

Json = dict[str, Any]


@router.post(
    "/responses",
    response_model=None,
    summary="A response with memory",
    description="For OpenAI's clients: the last user message becomes a turn of the thread `conversation`, of the one "
    "of `previous_response_id`, of the one that the history continues (DERIVE_THREADS), or of a new one. "
    "With `store: false` nothing is kept. `stream` answers as `text/event-stream`; `memory` and "
    "`memory_hits` are in the response.",
    responses={200: whole_or_streamed(ResponseAnswer), **RESPONSES},
)
async def create_response(
    body: ResponseRequest,
    headers: ChatHeaders,
    request: Request,
    services: OpenServices,
    turns: OpenTurns,
    caller: WhoCalls,
) -> JSONResponse | StreamingResponse:
    """Run the turn; answer it whole, or as its events come."""
    _check_served(body)
    kept = KeptResponses(services.memory, user_of_request(caller, body.user, headers, services), caller.agent_id)
    items = await kept.resolved(body.input)
    place = await find_place(kept, body, items, named=thread_of(body, headers, services))
    read = place.read(items)
    most = services.memory.config.max_message_characters
    messages = split_messages(read.messages, read.fields, field="input", most=most)
    api_key = callers_key(request, services)
    await check_model(services, body.model, api_key=api_key)
    settings = settings_of(body)
    wants_kept = body.store is not False
    named = place.thread_id or (None if services.derives_threads else str(uuid4()))
    whose = Whose(kept.user_id, caller.agent_id)
    keeping = await keeping_of(services, whose, messages, headers, thread_id=named, stores=wants_kept)
    response = {**kept_settings(settings), "items": read.items} if keeping.unkept is None else None
    chat = _chat(body, place, messages, api_key, response=response)
    if keeping.unkept == "store_false":
        chat = await _with_stored_history(kept, place, chat)
    wanted = TurnRequest(
        Scope(kept.user_id),
        messages.message,
        headers.key,
        metadata=dict(body.metadata or {}),
        options=caller.options(memory_options(body, headers)),
        agent_id=label_of(caller, body, headers),
        wants_tokens=bool(body.stream),
        chat=chat,
    )
    running = turns.start(keeping.applied_to(wanted))
    try:
        await running.acceptance()
        model = body.model or services.memory.chat.name
        shown = begun(running.turn_id, settings, body.metadata or {}, model=model, at=int(time.time()))
        shown["store"] = keeping.unkept is None
        if body.stream:
            return await ResponseStream(running, shown).response()
        turn = await running.outcome()
        whole = {**ended(shown, turn, running.turn_id), **remembered(turn, running)}
        return JSONResponse(whole, headers=stored_header(running))
    except ModelUnavailable as error:
        raise callers_own(error, chat) from error


def _check_served(body: ResponseRequest) -> None:
    if body.background:
        raise wrong("background", "must be false: responses are made while the client waits")
    if body.prompt is not None:
        raise wrong("prompt", "names a template, of which the service keeps none; send instructions and input")


def _chat(
    body: ResponseRequest,
    place: Place,
    messages: ClientMessages,
    api_key: str | None,
    *,
    response: Json | None,
) -> ClientChat:
    instructions: tuple[Json, ...] = ()
    if body.instructions:
        instructions = ({"role": "system", "content": body.instructions},)
    return ClientChat(
        history=(*instructions, *messages.history),
        rounds=place.rounds(messages.rounds),
        content=messages.content,
        tools=chat_tools(body),
        parameters=chat_parameters(body),
        model=body.model,
        api_key=api_key,
        appends=place.appends,
        follows=place.follows,
        response=response,
        proposals=place.proposals if response is not None else (),
    )


async def _with_stored_history(kept: KeptResponses, place: Place, chat: ClientChat) -> ClientChat:
    """Return the chat with the stored history that it continues, because a request without a thread reads no window."""
    if not place.appends or place.thread_id is None:
        return chat
    memory, scope = kept.memory, Scope(kept.user_id, place.thread_id)
    if place.follows is None:
        exchanges = await memory.recent(scope, limit=memory.config.window, agent_id=kept.agent_id)
    else:
        exchanges = await read_until(memory, scope, place.follows, memory.config.window, agent_id=kept.agent_id)
    return replace(chat, history=continued(chat.history, exchanges).history)
