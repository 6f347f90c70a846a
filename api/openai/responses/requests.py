"""The fields of a request for a response. OpenAI's clients send more; unknown ones are ignored."""

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    WithJsonSchema,
)

from recollect.api.openai.memory_fields import MemoryFields
from recollect.api.openai.requests import Choice, Objects, check_sendable
from recollect.api.schemas.requests import Id, check_request_text
from recollect.memory.values.scope import ID_PATTERN

EXAMPLE: dict[str, Any] = {"model": "gpt-4.1-mini", "input": "Hi, I'm Ada.", "user": "ada", "conversation": "t1"}
MOST_PAIRS, MOST_PAIR_KEY, MOST_PAIR_VALUE = 16, 64, 512
"""Metadata has so many pairs, with keys and values of so many characters."""
ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["message", "function_call", "function_call_output", "item_reference", "reasoning"]},
        "role": {"enum": ["user", "assistant", "system", "developer"]},
        "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]},
    },
}
"""An item, for the OpenAPI text: `api/openai/responses/items.py` reads them."""
ID = {"type": "string", "pattern": f"^{ID_PATTERN}$"}
Object = Annotated[dict[str, Any], AfterValidator(check_sendable)]


def _check_input(value: Any) -> Any:
    if isinstance(value, str):
        return check_sendable(value)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):  # pyright: ignore[reportUnknownVariableType] - any JSON
        return check_sendable(value)  # pyright: ignore[reportUnknownArgumentType] - any JSON
    raise ValueError("must be a text, or a list of at least one item")


def _check_metadata(value: dict[str, str]) -> dict[str, str]:
    if len(value) > MOST_PAIRS or any(len(key) > MOST_PAIR_KEY for key in value):
        raise ValueError(f"must have at most {MOST_PAIRS} pairs, with keys of at most {MOST_PAIR_KEY} characters")
    if any(len(text) > MOST_PAIR_VALUE for text in value.values()):
        raise ValueError(f"must have values of at most {MOST_PAIR_VALUE} characters")
    for text in (*value, *value.values()):
        check_request_text(text)
    return value


def _conversation_id(value: Any) -> Any:
    """Return the id of a conversation that is given as an object."""
    if isinstance(value, dict):
        return value.get("id", value)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any JSON
    return value


Input = Annotated[
    Any,
    AfterValidator(_check_input),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": ITEM}]}),
]
Metadata = Annotated[dict[str, Annotated[str, Field(strict=True)]], AfterValidator(_check_metadata)]
ConversationId = Annotated[
    Id,
    BeforeValidator(_conversation_id),
    WithJsonSchema({"anyOf": [ID, {"type": "object", "properties": {"id": ID}}]}),
]
Text = Annotated[str, Field(strict=True), AfterValidator(check_request_text)]


class TextConfig(BaseModel):
    """How the text is to be."""

    model_config = ConfigDict(extra="ignore")

    format: Object | None = Field(None, description="text, json_object, or json_schema with its schema.")
    verbosity: Annotated[str, Field(strict=True, max_length=64)] | None = None


class Reasoning(BaseModel):
    """How a model is to reason."""

    model_config = ConfigDict(extra="ignore")

    effort: Annotated[str, Field(strict=True, max_length=64)] | None = None


class ResponseRequest(MemoryFields):
    """A request for a response as OpenAI's clients send it, with the fields of the memory."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [EXAMPLE]})

    input: Input = Field(description="A text, or items; the last user message becomes a turn.")
    model: Annotated[str, Field(strict=True, max_length=200)] | None = Field(
        None, description="One that GET /v1/models lists; null: CHAT_MODEL."
    )
    instructions: Text | None = Field(None, description="Added to the service's own, for this response alone.")
    stream: StrictBool | None = Field(None, description="Answer as text/event-stream.")
    store: StrictBool | None = Field(None, description="false: nothing of the response is kept.")
    background: StrictBool | None = Field(None, description="Not served; true is refused.")
    prompt: Object | None = Field(None, description="Not served; refused.")
    previous_response_id: Annotated[str, Field(strict=True, max_length=200)] | None = Field(
        None, description="The response that this one continues, in its thread."
    )
    conversation: ConversationId | None = Field(None, description="The thread, made at first use: its id or {id}.")
    metadata: Metadata | None = Field(None, description="Kept with the turn: up to 16 pairs of texts.")
    tools: Objects | None = Field(None, description="Functions that the client runs itself.")
    tool_choice: Choice | None = None
    parallel_tool_calls: StrictBool | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    max_output_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    temperature: StrictFloat | None = None
    top_p: StrictFloat | None = None
    user: Annotated[Any, WithJsonSchema({"type": "string"})] = Field(
        None, description="Whose memory it is; ignored where the key is one user's own."
    )
