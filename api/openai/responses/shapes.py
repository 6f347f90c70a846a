"""Builds responses and their items as OpenAI's clients read them."""

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.api.openai.answers import finish_reason, said, tool_calls
from recollect.api.openai.responses.ids import (
    answer_id,
    call_item_id,
    further_id,
    input_id,
    response_id,
)
from recollect.api.openai.responses.requests import ResponseRequest
from recollect.api.openai.responses.tools import shown_tools
from recollect.memory.values.text import cut
from recollect.memory.values.turn import Message, Turn

Json = dict[str, Any]

INCOMPLETE: Mapping[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""The reason of an incomplete response, by why its text ended."""
MOST_KEPT_INSTRUCTIONS = 4_000
"""A stored response keeps so many characters of its instructions."""


def settings_of(body: ResponseRequest) -> Json:
    """Return what a response repeats of its request."""
    return {
        "instructions": body.instructions,
        "previous_response_id": body.previous_response_id,
        "conversation": None if body.conversation is None else {"id": body.conversation},
        "temperature": body.temperature,
        "top_p": body.top_p,
        "max_output_tokens": body.max_output_tokens,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "tool_choice": body.tool_choice or "auto",
        "tools": shown_tools(body.tools or ()),
        "text": {"format": {"type": "text"}} if body.text is None else body.text.model_dump(exclude_none=True),
        "reasoning": None if body.reasoning is None else body.reasoning.model_dump(),
        "truncation": "disabled",
    }


def kept_settings(settings: Mapping[str, Any]) -> Json:
    """Return the settings as a turn keeps them: of the functions the names, of long instructions the beginning."""
    instructions: str | None = settings["instructions"]
    tools = shown_tools([{"name": tool.get("name")} for tool in settings["tools"]])
    shortened = None if instructions is None else cut(instructions, MOST_KEPT_INSTRUCTIONS)
    text: Mapping[str, Any] = settings["text"]
    form: Mapping[str, Any] = text.get("format") or {}
    kind = form.get("type", "text")
    return {**settings, "instructions": shortened, "tools": tools, "text": {"format": {"type": kind}}}


def begun(turn_id: str, settings: Mapping[str, Any], metadata: Mapping[str, Any], *, model: str, at: float) -> Json:
    """Return a response that is being made; `at` is its begin in seconds."""
    return {
        "id": response_id(turn_id),
        "object": "response",
        "created_at": at,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "metadata": dict(metadata),
        "store": True,
        "usage": None,
        **settings,
    }


def ended(begun: Mapping[str, Any], turn: Turn, turn_id: str) -> Json:
    """Return the response with the turn's answer."""
    reason = INCOMPLETE.get(finish_reason(turn))
    result: Mapping[str, Any] = turn.result or {}
    return {
        **begun,
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "model": result.get("model") or begun["model"],
        "output": output_of(turn, turn_id),
        "usage": usage_of(result.get("usage") or {}),
    }


def output_of(turn: Turn, turn_id: str) -> list[Json]:
    """Return the items that a response consists of: its text, then the calls of the client's functions."""
    calls = tool_calls(turn)
    text = said(turn)
    status = "incomplete" if finish_reason(turn) in INCOMPLETE else "completed"
    message = [answer_item(turn_id, text, status=status)] if text or not calls else []
    return [*message, *(call_item(turn_id, number, call) for number, call in enumerate(calls))]


def answer_item(turn_id: str, text: str, *, status: str = "completed") -> Json:
    """Return an answer as an item."""
    return {
        "id": answer_id(turn_id),
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [text_part(text)],
    }


def text_part(text: str) -> Json:
    """Return the part of an answer that is its text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(turn_id: str, number: int, call: Mapping[str, Any], *, status: str = "completed") -> Json:
    """Return a call, in the form of a chat completion, as an item."""
    function = call["function"]
    return {
        "id": call_item_id(turn_id, number),
        "type": "function_call",
        "call_id": call["id"],
        "name": function["name"],
        "arguments": function["arguments"],
        "status": status,
    }


def user_item(turn_id: str, text: str) -> Json:
    """Return a user's message as an item."""
    content = [{"type": "input_text", "text": text}]
    return {"id": input_id(turn_id), "type": "message", "role": "user", "status": "completed", "content": content}


def round_items(turn_id: str, rounds: Sequence[Mapping[str, Any]], items: Mapping[str, str]) -> list[Json]:
    """Return a client's rounds of calls and results as items; `items` are the ids that the calls had as items."""
    ids = {call_id: item_id for item_id, call_id in items.items()}
    shown = list[Json]()
    for message in rounds:
        for call in message.get("tool_calls") or ():
            item = call_item(turn_id, len(shown), call)
            shown.append({**item, "id": ids.get(call["id"], item["id"])})
        if message["role"] == "tool":
            result = {"call_id": message["tool_call_id"], "output": message["content"], "status": "completed"}
            shown.append({"id": f"fco_{len(shown)}_{turn_id}", "type": "function_call_output", **result})
    return shown


def messages_items(messages: Sequence[Message]) -> list[Json]:
    """Return stored messages as items, each user's one with the further messages that stand behind it."""
    shown = list[Json]()
    for message in messages:
        if message.role == "user":
            shown.append(user_item(message.turn_id, message.content))
        shown += [
            _further_item(message.turn_id, number, one.role, one.content)
            for number, one in enumerate(message.further, start=1)
            if one.role != "tool"
        ]
        if message.role == "assistant":
            shown.append(answer_item(message.turn_id, message.content))
    return shown


def _further_item(turn_id: str, number: int, role: str, text: str) -> Json:
    content = [text_part(text)] if role == "assistant" else [{"type": "input_text", "text": text}]
    item_id = further_id(turn_id, number)
    return {"id": item_id, "type": "message", "role": role, "status": "completed", "content": content}


def usage_of(counted: Mapping[str, int]) -> Json:
    """Return the tokens in the fields of a response."""
    read, written = counted.get("input_tokens", 0), counted.get("output_tokens", 0)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
