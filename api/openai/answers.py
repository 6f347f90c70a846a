"""Answers of the OpenAI-compatible routes: built from a turn, and described for the OpenAPI text."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from recollect.api.openai.fate import RememberedAnswer, remembered
from recollect.graph.running_turn import RunningTurn
from recollect.memory.values.turn import Turn

Json = dict[str, Any]


class FunctionAnswer(BaseModel):
    """A called function; `arguments` is JSON as the model wrote it."""

    name: str
    arguments: str


class ToolCallAnswer(BaseModel):
    """One call of a client's tool."""

    id: str
    type: Literal["function"]
    function: FunctionAnswer


class ChatMessageAnswer(BaseModel):
    """The answer; `content` is null where there are calls alone."""

    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: list[ToolCallAnswer] | None = Field(None, description="Only where the client's tools are called.")


class ChoiceAnswer(BaseModel):
    """The one choice."""

    index: Literal[0]
    message: ChatMessageAnswer
    logprobs: None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]


class ChatUsageAnswer(BaseModel):
    """Tokens of the model's calls, as the provider counted them."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletionAnswer(RememberedAnswer):
    """A chat completion, with what was recalled."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChoiceAnswer]
    usage: ChatUsageAnswer


class ModelAnswer(BaseModel):
    """A model that `model` may name."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsAnswer(BaseModel):
    """The models that `model` may name, CHAT_MODEL first."""

    object: Literal["list"]
    data: list[ModelAnswer]


def completion(turn: Turn, running: RunningTurn) -> Json:
    """Return the turn as a chat completion."""
    calls = tool_calls(turn)
    message: Json = {"role": "assistant", "content": said(turn) or (None if calls else ""), "refusal": None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(turn)}
    return {
        "id": completion_id(running),
        "object": "chat.completion",
        "created": int(turn.reply.created_at.timestamp()) if turn.reply is not None else int(time.time()),
        "model": _result(turn)["model"],
        "choices": [choice],
        "usage": usage(turn),
        **remembered(turn, running),
    }


def completion_id(running: RunningTurn) -> str:
    """Return the completion's id, which names the turn."""
    return f"chatcmpl-{running.turn_id}"


def said(turn: Turn) -> str:
    """Return the answer's text."""
    return turn.reply.content if turn.reply is not None else ""


def tool_calls(turn: Turn) -> list[Json]:
    """Return the calls of the client's tools whose results the turn needs."""
    return _result(turn).get("tool_calls") or []


def finish_reason(turn: Turn) -> str:
    """Return why the answer ended."""
    return "tool_calls" if tool_calls(turn) else _result(turn).get("finish_reason", "stop")


def usage(turn: Turn) -> Json:
    """Return the tokens in OpenAI's fields."""
    counted = _result(turn)["usage"]
    read, written = counted["input_tokens"], counted["output_tokens"]
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def model_list(names: Iterable[str]) -> Json:
    """Return the list of models."""
    return {"object": "list", "data": [model(name) for name in names]}


def model(name: str) -> Json:
    """Return one model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "provider"}


def _result(turn: Turn) -> Mapping[str, Any]:
    return turn.result or {}
