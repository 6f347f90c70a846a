"""`/v1/chat/completions` and `/v1/models`: the agent for clients that speak OpenAI's protocol."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import JSONResponse, StreamingResponse

from recollect.api.auth.bearer import bearer_token
from recollect.api.auth.caller import Caller, WhoCalls
from recollect.api.openai.answers import (
    STORED,
    ChatCompletionAnswer,
    ModelAnswer,
    ModelsAnswer,
    completion,
    model,
    model_list,
    stored_header,
)
from recollect.api.openai.messages import read_messages
from recollect.api.openai.requests import ChatCompletionRequest, ChatHeaders, MemoryHeaders
from recollect.api.openai.stream import ChatStream, completion_id
from recollect.api.openai.tools import read_tools
from recollect.api.openai_errors import RESPONSES
from recollect.api.state import OpenServices, OpenTurns
from recollect.graph.client_chat import ClientChat
from recollect.graph.resources import Services
from recollect.graph.running_turn import TurnRequest
from recollect.memory.values.errors import (
    Forbidden,
    InvalidRequest,
    ModelUnavailable,
    Problem,
    RateLimited,
    RecollectError,
    Unauthorized,
    UnknownModel,
)
from recollect.memory.values.scope import Scope, check_id

router = APIRouter(prefix="/v1", tags=["openai"])

REFUSED = "The model's provider refused the key; send a valid one as `Authorization: Bearer …`."
KEPT = "Whether the turn is kept; of a stream, whether it is going to be (the last chunk has the last word)."
RETRY_SECONDS = 10
"""The Retry-After where the provider rate-limits the caller's own key."""


@router.post(
    "/chat/completions",
    response_model=None,
    summary="A chat completion with memory",
    description="For OpenAI's clients: the last user message becomes a turn of the thread `memory_id`. Without a "
    "thread nothing is stored: `memory.stored` and the header `X-Memory-Stored` say so. `stream` answers as "
    "`text/event-stream`; `memory` and `memory_hits` are in the last chunk.",
    responses={
        200: {
            "model": ChatCompletionAnswer,
            "content": {"application/json": {}, "text/event-stream": {}},
            "headers": {STORED: {"description": KEPT, "schema": {"type": "string", "enum": ["true", "false"]}}},
        },
        **RESPONSES,
    },
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
    user_id = _user(caller, body, headers)
    most = services.memory.config.max_message_characters
    chat, message = _chat(body, api_key=_callers_key(request, services), most=most)
    if body.model is not None and body.model not in await _models(services, chat.api_key, wanted=body.model):
        raise UnknownModel
    thread_id = body.memory_id if body.memory_id is not None else headers.memory_id
    running = turns.start(
        TurnRequest(
            scope=Scope(user_id, thread_id),
            message=message,
            turn_id=headers.key if thread_id is not None else None,
            options=_options(body, headers, stateless=thread_id is None),
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
        shown = completion(turn, completion_id=completion_id(running), is_stored=running.is_stored)
        return JSONResponse(shown, headers=stored_header(running.is_stored))
    except ModelUnavailable as error:
        raise _callers_own(error, chat) from error


@router.get(
    "/models",
    response_model=None,
    summary="The models that a request may name",
    description="What the provider lists, CHAT_MODEL first; that one alone where the provider cannot be asked.",
    responses={200: {"model": ModelsAnswer}, **RESPONSES},
)
async def get_models(request: Request, services: OpenServices) -> JSONResponse:
    """The list is asked for again after a minute."""
    return JSONResponse(model_list(await _listed(request, services)))


@router.get(
    "/models/{model_id:path}",
    response_model=None,
    summary="One model",
    responses={200: {"model": ModelAnswer}, **RESPONSES},
)
async def get_model(
    model_id: Annotated[str, Path(description="Its name, which may hold slashes.")],
    request: Request,
    services: OpenServices,
) -> JSONResponse:
    """404 model_not_found where the list has no such name."""
    if model_id not in await _listed(request, services):
        raise UnknownModel
    return JSONResponse(model(model_id))


def _user(caller: Caller, body: ChatCompletionRequest, headers: MemoryHeaders) -> str:
    """Return the caller's own user; else the body's, else the header's."""
    if caller.user_id is not None:
        return caller.user_id
    field, given = ("user", body.user) if body.user is not None else ("X-Memory-User", headers.user)
    if given is None:
        raise _wrong("user", "is missing; name whose memory it is there or in X-Memory-User")
    if not isinstance(given, str):
        raise _wrong(field, "must be a string")
    return check_id(field, given)


def _chat(body: ChatCompletionRequest, *, api_key: str | None, most: int) -> tuple[ClientChat, str]:
    """Return the client's chat, and its user's message."""
    read = read_messages(body.messages, most=most)
    chat = ClientChat(
        history=read.history,
        rounds=read.rounds,
        content=read.content,
        tools=read_tools(body.tools or (), body.tool_choice),
        parameters=body.parameters(),
        model=body.model,
        api_key=api_key,
    )
    return chat, read.message


def _options(body: ChatCompletionRequest, headers: MemoryHeaders, *, stateless: bool) -> dict[str, Any]:
    """Return the memory's options; the body overrides the headers."""
    said: Mapping[str, tuple[Any, Any]] = {
        "scope": (body.memory_scope, headers.scope),
        "top_k": (body.memory_top_k, headers.top_k),
        "recency_weight": (body.memory_recency_weight, headers.recency_weight),
        "score_threshold": (body.memory_score_threshold, headers.score_threshold),
        "domains": (body.memory_domains, headers.domains),
    }
    options = {name: first if first is not None else second for name, (first, second) in said.items()}
    given = {name: value for name, value in options.items() if value is not None}
    return {**given, "scope": "user", "window": 0} if stateless else given


def _callers_key(request: Request, services: Services) -> str | None:
    """Return the caller's bearer token where it is the chat model's key; never this service's own token."""
    token = bearer_token(request.scope) if services.forwards_keys else None
    if token is None or request.app.state.admission.is_owners(token):
        return None
    if not token.isascii():
        raise Unauthorized(REFUSED)
    return token.decode()


async def _models(services: Services, api_key: str | None, *, wanted: str) -> list[str]:
    """Return the models that `wanted` may name; the provider is asked only if `wanted` is not the configured one."""
    chat = services.memory.chat
    if wanted == chat.name:
        return [chat.name]
    try:
        return list(await chat.models(api_key=api_key))
    except ModelUnavailable as error:
        raise _with_callers_key(error) if api_key else error from error


async def _listed(request: Request, services: Services) -> list[str]:
    chat = services.memory.chat
    api_key = _callers_key(request, services)
    try:
        return list(await chat.models(api_key=api_key))
    except ModelUnavailable as error:
        if api_key and error.status in {401, 403}:
            raise _with_callers_key(error) from error
        return [chat.name]


def _callers_own(error: ModelUnavailable, chat: ClientChat) -> RecollectError:
    """Return the error as the caller's own, where the provider refused the caller's key or request."""
    brought = chat.parameters or chat.tools or chat.content or chat.history or chat.rounds
    if error.status in {400, 422} and brought:
        return InvalidRequest(
            f"The model's provider refused the request ({error.status}); check its parameters, tools and messages."
        )
    return _with_callers_key(error) if chat.api_key else error


def _with_callers_key(error: ModelUnavailable) -> RecollectError:
    if error.status == 401:
        return Unauthorized(REFUSED)
    if error.status == 403:
        return Forbidden("The model's provider does not let this key ask the model.")
    return RateLimited(retry_after=RETRY_SECONDS) if error.status == 429 else error


def _wrong(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"The request is not valid: see {field}.", problems=[Problem(field, problem)])
