"""`POST /v1/responses`: the agent for clients that speak OpenAI's Responses."""

import time
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.openai.callers import callers_key, callers_own, check_model, wrong
from recollect.api.openai.fate import remembered, stored_header, whole_or_streamed
from recollect.api.openai.identity import is_chore, thread_of, user_of
from recollect.api.openai.memory_fields import ChatHeaders, memory_options, stateless
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
from recollect.graph.client_chat import ClientChat, Unkept
from recollect.graph.past import continued, read_until
from recollect.graph.running_turn import TurnRequest
from recollect.memory.memory import Memory
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/v1", tags=["openai"])

Json = dict[str, Any]


@router.post(
    "/responses",
    response_model=None,
    summary="A response with memory",
    description="For OpenAI's clients: the last user message becomes a turn of the thread `conversation`, of the one "
    "of `previous_response_id`, or of a new one. With `store: false` nothing is kept. `stream` answers as "
    "`text/event-stream`; `memory` and `memory_hits` are in the response.",
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
    kept = KeptResponses(services.memory, user_of(caller, body.user, headers, services))
    items = await kept.resolved(body.input)
    place = await find_place(kept, body, items, named=thread_of(body, headers, services))
    read = place.read(items)
    most = services.memory.config.max_message_characters
    messages = split_messages(read.messages, read.fields, field="input", most=most)
    api_key = callers_key(request, services)
    await check_model(services, body.model, api_key=api_key)
    settings = settings_of(body)
    options = memory_options(body, headers)
    if is_chore(messages, headers, services):
        chat, options = _chat(body, place, messages, api_key, unkept="chore"), {**options, "enabled": False}
    elif body.store is False:
        chat = _chat(body, place, messages, api_key, unkept="store_false")
        chat = await _unkept(services.memory, kept.user_id, place, chat)
    else:
        chat = _chat(body, place, messages, api_key, response={**kept_settings(settings), "items": read.items})
    running = turns.start(
        TurnRequest(
            scope=Scope(kept.user_id, place.thread_id if chat.unkept is None else None),
            message=messages.message,
            turn_id=headers.key if chat.unkept is None else None,
            metadata=dict(body.metadata or {}),
            options=options if chat.unkept is None else stateless(options),
            wants_tokens=bool(body.stream),
            chat=chat,
        )
    )
    try:
        await running.acceptance()
        model = body.model or services.memory.chat.name
        shown = begun(running.turn_id, settings, body.metadata or {}, model=model, at=int(time.time()))
        shown["store"] = chat.unkept is None
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
    response: Json | None = None,
    unkept: Unkept | None = None,
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
        unkept=unkept,
        appends=place.appends,
        follows=place.follows,
        response=response,
        proposals=place.proposals if response is not None else (),
    )


async def _unkept(memory: Memory, user_id: str, place: Place, chat: ClientChat) -> ClientChat:
    """Return the chat with the stored history that it continues, because a request without a thread reads no window."""
    if not place.appends:
        return chat
    scope = Scope(user_id, place.thread_id)
    if place.follows is None:
        exchanges = await memory.recent(scope, limit=memory.config.window)
    else:
        exchanges = await read_until(memory, scope, place.follows, memory.config.window)
    return replace(chat, history=continued(chat.history, exchanges).history)
