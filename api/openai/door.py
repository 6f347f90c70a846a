"""`/v1/chat/completions`: the agent for clients that speak OpenAI's protocol."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.openai.answers import ChatCompletionAnswer, completion
from recollect.api.openai.callers import callers_key, callers_own, check_model
from recollect.api.openai.fate import stored_header, whole_or_streamed
from recollect.api.openai.identity import is_chore, thread_of, user_of
from recollect.api.openai.memory_fields import ChatHeaders, memory_options, stateless
from recollect.api.openai.messages import ClientMessages, read_messages
from recollect.api.openai.requests import ChatCompletionRequest
from recollect.api.openai.stream import ChatStream
from recollect.api.openai.tools import read_tools
from recollect.api.openai_errors import RESPONSES
from recollect.api.state import OpenServices, OpenTurns
from recollect.graph.client_chat import ClientChat, Unkept
from recollect.graph.running_turn import TurnRequest
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/v1", tags=["openai"])


@router.post(
    "/chat/completions",
    response_model=None,
    summary="A chat completion with memory",
    description="For OpenAI's clients: the last user message becomes a turn of the thread `memory_id`. Without a "
    "thread nothing is stored: `memory.stored` and the header `X-Memory-Stored` say so. `stream` answers as "
    "`text/event-stream`; `memory` and `memory_hits` are in the last chunk.",
    responses={200: whole_or_streamed(ChatCompletionAnswer), **RESPONSES},
)
async def create_completion(
    body: ChatCompletionRequest,
    headers: ChatHeaders,
    request: Request,
    services: OpenServices,
    turns: OpenTurns,
    caller: WhoCalls,
) -> JSONResponse | StreamingResponse:
    """Run the turn; answer it whole, or as it comes."""
    user_id = user_of(caller, body.user, headers, services)
    thread_id = thread_of(body, headers, services)
    read = read_messages(body.messages, most=services.memory.config.max_message_characters)
    options = memory_options(body, headers)
    unkept: Unkept | None = None if thread_id is not None else "no_thread"
    if is_chore(read, headers, services):
        thread_id, unkept, options = None, "chore", {**options, "enabled": False}
    chat = _chat(body, read, api_key=callers_key(request, services), unkept=unkept)
    await check_model(services, body.model, api_key=chat.api_key)
    running = turns.start(
        TurnRequest(
            scope=Scope(user_id, thread_id),
            message=read.message,
            turn_id=headers.key if thread_id is not None else None,
            options=options if thread_id is not None else stateless(options),
            wants_tokens=bool(body.stream),
            chat=chat,
        )
    )
    try:
        await running.acceptance()
        if body.stream:
            include_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
            asked = body.model or services.memory.chat.name
            return await ChatStream(running, model=asked, include_usage=include_usage).response()
        turn = await running.outcome()
        return JSONResponse(completion(turn, running), headers=stored_header(running))
    except ModelUnavailable as error:
        raise callers_own(error, chat) from error


def _chat(
    body: ChatCompletionRequest, read: ClientMessages, *, api_key: str | None, unkept: Unkept | None
) -> ClientChat:
    return ClientChat(
        history=read.history,
        rounds=read.rounds,
        content=read.content,
        tools=read_tools(body.tools or (), body.tool_choice),
        parameters=body.parameters(),
        model=body.model,
        api_key=api_key,
        unkept=unkept,
    )
