"""`/v1/chat/completions`: the agent for clients that speak OpenAI's protocol."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from recollect.api.auth.caller import WhoCalls
from recollect.api.auth.whose import Whose
from recollect.api.openai.answers import ChatCompletionAnswer, completion
from recollect.api.openai.callers import callers_key, callers_own, check_model
from recollect.api.openai.fate import stored_header, whole_or_streamed
from recollect.api.openai.identity import thread_of, user_of_request
from recollect.api.openai.keeping import keeping_of
from recollect.api.openai.memory_fields import ChatHeaders, label_of, memory_options
from recollect.api.openai.messages import ClientMessages, read_messages
from recollect.api.openai.requests import ChatCompletionRequest
from recollect.api.openai.stream import ChatStream
from recollect.api.openai.tools import read_tools
from recollect.api.openai_errors import RESPONSES
from recollect.api.state import OpenServices, OpenTurns
from recollect.graph.client_chat import ClientChat
from recollect.graph.running_turn import TurnRequest
from recollect.memory.values.errors import ModelUnavailable
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/v1", tags=["openai"])


@router.post(
    "/chat/completions",
    response_model=None,
    summary="A chat completion with memory",
    description="For OpenAI's clients: the last user message becomes a turn of the thread `memory_id`. Without one "
    "it is the thread that the history continues (DERIVE_THREADS); else nothing is stored: "
    "`memory.stored` and the header `X-Memory-Stored` say so. `stream` answers as `text/event-stream`; "
    "`memory` and `memory_hits` are in the last chunk.",
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
    user_id = user_of_request(caller, body.user, headers, services)
    read = read_messages(body.messages, most=services.memory.config.max_message_characters)
    chat = _chat(body, read, api_key=callers_key(request, services))
    await check_model(services, body.model, api_key=chat.api_key)
    named = thread_of(body, headers, services)
    keeping = await keeping_of(services, Whose(user_id, caller.agent_id), read, headers, thread_id=named)
    options = caller.options(memory_options(body, headers))
    wanted = TurnRequest(
        Scope(user_id),
        read.message,
        headers.key,
        options=options,
        agent_id=label_of(caller, body, headers),
        wants_tokens=bool(body.stream),
        chat=chat,
    )
    running = turns.start(keeping.applied_to(wanted))
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


def _chat(body: ChatCompletionRequest, read: ClientMessages, *, api_key: str | None) -> ClientChat:
    return ClientChat(
        history=read.history,
        rounds=read.rounds,
        content=read.content,
        tools=read_tools(body.tools or (), body.tool_choice),
        parameters=body.parameters(),
        model=body.model,
        api_key=api_key,
    )
