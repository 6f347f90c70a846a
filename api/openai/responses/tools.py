"""Translates a response's tools and parameters into those of a chat completion, which the chat model port takes."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from recollect.api.openai.callers import wrong
from recollect.api.openai.responses.requests import ResponseRequest
from recollect.api.openai.tools import read_tools

Json = dict[str, Any]

_FUNCTION = ("name", "description", "parameters", "strict")


def chat_tools(body: ResponseRequest) -> tuple[Json, ...]:
    """Return the client's functions in the form of a chat completion.

    Raises:
        InvalidRequest: a tool is hosted elsewhere, has no name, or the choice is none of them.
    """
    tools = [_function(place, tool) for place, tool in enumerate(body.tools or ())]
    return read_tools(tools, chat_choice(body.tool_choice))


def chat_choice(choice: Any) -> Any:
    """Return `tool_choice` in the form of a chat completion.

    Raises:
        InvalidRequest: it chooses a tool that is hosted elsewhere.
    """
    if not isinstance(choice, dict):
        return choice
    said = cast("Mapping[str, Any]", choice)
    if said.get("type") == "function" and isinstance(said.get("name"), str):
        return {"type": "function", "function": {"name": said["name"]}}
    if said.get("type") == "allowed_tools" and isinstance(said.get("tools"), list):
        allowed = [_allowed(tool) for tool in said["tools"]]
        return {"type": "allowed_tools", "allowed_tools": {"mode": said.get("mode", "auto"), "tools": allowed}}
    raise wrong("tool_choice", "must be none, auto, required, or name one of the functions")


def chat_parameters(body: ResponseRequest) -> Json:
    """Return the parameters that the chat model gets, named as in a chat completion."""
    said: Mapping[str, Any] = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "max_completion_tokens": body.max_output_tokens,
        "parallel_tool_calls": body.parallel_tool_calls if body.tools else None,
        "tool_choice": chat_choice(body.tool_choice) if body.tools else None,
        "response_format": _format(body.text.format) if body.text is not None else None,
        "verbosity": body.text.verbosity if body.text is not None else None,
        "reasoning_effort": body.reasoning.effort if body.reasoning is not None else None,
    }
    return {name: value for name, value in said.items() if value is not None}


def shown_tools(tools: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Return the functions as a response shows them."""
    return [
        {
            "type": "function",
            "name": tool.get("name"),
            "description": tool.get("description"),
            "parameters": tool.get("parameters"),
            "strict": tool.get("strict"),
        }
        for tool in tools
    ]


def _function(place: int, tool: Mapping[str, Any]) -> Json:
    if tool.get("type") != "function":
        raise wrong(f"tools.{place}.type", "must be function: the service runs no tools of other types")
    return {"type": "function", "function": {name: tool[name] for name in _FUNCTION if tool.get(name) is not None}}


def _allowed(tool: Any) -> Json:
    if not isinstance(tool, dict) or tool.get("type") != "function" or not isinstance(tool.get("name"), str):  # pyright: ignore[reportUnknownMemberType] - any JSON
        raise wrong("tool_choice", "must name functions alone")
    return {"type": "function", "function": {"name": tool["name"]}}


def _format(said: Mapping[str, Any] | None) -> Json | None:
    kind = None if said is None else said.get("type", "text")
    if said is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "json_object"}
    if kind != "json_schema":
        raise wrong("text.format.type", "must be text, json_object or json_schema")
    schema = {name: said[name] for name in ("name", "description", "schema", "strict") if said.get(name) is not None}
    return {"type": "json_schema", "json_schema": schema}
