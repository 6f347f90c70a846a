"""The fields of a chat request. OpenAI's clients send many more; unknown ones are ignored."""

import json
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
)

from recollect.api.openai.memory_fields import MemoryFields

PASSED_ON = frozenset(
    {
        *("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "presence_penalty"),
        *("frequency_penalty", "logit_bias", "reasoning_effort", "response_format", "tool_choice"),
        "parallel_tool_calls",
    }
)
"""Fields that the model gets unchanged."""
EXAMPLE: dict[str, Any] = {
    "model": "gpt-4.1-mini",
    "messages": [{"role": "user", "content": "Hi, I'm Ada."}],
    "user": "ada",
    "memory_id": "t1",
}

MESSAGE: dict[str, Any] = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
        "content": {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {
                            "type": {"enum": ["text", "image_url", "input_audio", "file"]},
                            "text": {"type": "string"},
                        },
                    },
                },
                {"type": "null"},
            ]
        },
        "tool_calls": {"type": "array", "items": {"type": "object"}},
        "tool_call_id": {"type": "string"},
    },
}
"""A message, for the OpenAPI text: `api/openai/messages.py` reads them."""


def check_sendable(value: Any) -> Any:
    """Check JSON that is to be sent on: no NaN, no lone surrogates, bounded nesting."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain lone surrogates") from None
    except ValueError:
        raise ValueError("must not contain NaN or Infinity") from None
    except RecursionError:
        raise ValueError("is nested too deep") from None
    return value


def _check_choice(value: Any) -> Any:
    if value in ("none", "auto", "required") or isinstance(value, dict):
        return check_sendable(value)  # pyright: ignore[reportUnknownArgumentType] - any JSON
    raise ValueError("must be none, auto, required, or an object that names a tool")


def _check_stop(value: Any) -> Any:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value)):  # pyright: ignore[reportUnknownVariableType] - any JSON
        return check_sendable(value)  # pyright: ignore[reportUnknownArgumentType] - any JSON
    raise ValueError("must be a string or a list of strings")


def _check_one(value: int) -> int:
    if value != 1:
        raise ValueError("must be 1: there is one answer to a turn")
    return value


Objects = Annotated[list[dict[str, Any]], AfterValidator(check_sendable)]
Messages = Annotated[
    list[dict[str, Any]],
    Field(min_length=1),
    AfterValidator(check_sendable),
    WithJsonSchema({"type": "array", "minItems": 1, "items": MESSAGE}),
]
Choice = Annotated[
    Any,
    AfterValidator(_check_choice),
    WithJsonSchema({"anyOf": [{"enum": ["none", "auto", "required"]}, {"type": "object"}]}),
]
Stop = Annotated[
    Any,
    AfterValidator(_check_stop),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class StreamOptions(BaseModel):
    """How a stream is to be."""

    include_usage: StrictBool | None = Field(None, description="Add a last chunk with the usage.")


class ChatCompletionRequest(MemoryFields):
    """A chat request as OpenAI's clients send it, with the fields of the memory."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [EXAMPLE]})

    messages: Messages = Field(description="The conversation; the last user message becomes a turn.")
    model: Annotated[str, Field(strict=True, max_length=200)] | None = Field(
        None, description="One that GET /v1/models lists; null: CHAT_MODEL."
    )
    stream: StrictBool | None = Field(None, description="Answer as text/event-stream.")
    stream_options: StreamOptions | None = None
    n: Annotated[StrictInt, AfterValidator(_check_one)] | None = Field(None, description="1 alone.")
    tools: Objects | None = Field(None, description="Functions that the client runs itself.")
    tool_choice: Choice | None = None
    parallel_tool_calls: StrictBool | None = None
    response_format: Annotated[dict[str, Any], AfterValidator(check_sendable)] | None = None
    temperature: StrictFloat | None = None
    top_p: StrictFloat | None = None
    max_tokens: StrictInt | None = None
    max_completion_tokens: StrictInt | None = None
    stop: Stop | None = None
    seed: StrictInt | None = None
    presence_penalty: StrictFloat | None = None
    frequency_penalty: StrictFloat | None = None
    logit_bias: dict[str, StrictFloat] | None = None
    reasoning_effort: Annotated[str, Field(strict=True, max_length=64)] | None = None
    user: Annotated[Any, WithJsonSchema({"type": "string"})] = Field(
        None, description="Whose memory it is; ignored where the key is one user's own."
    )

    def parameters(self) -> dict[str, Any]:
        """Return what goes to the model as it is."""
        return self.model_dump(include=set(PASSED_ON), exclude_none=True)
