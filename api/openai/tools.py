"""Reads and checks the tools of a chat request."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from recollect.api.openai.callers import wrong
from recollect.graph.trust import OWN_TOOLS

Json = dict[str, Any]

MOST_NAME_CHARACTERS = 128


def read_tools(tools: Sequence[Mapping[str, Any]], choice: Any) -> tuple[Json, ...]:
    """Check the tools, which are passed on unchanged; `choice` is the request's `tool_choice`.

    Raises:
        InvalidRequest: one is no function, has no name or another one's, or the choice is none of them.
    """
    names = list[str]()
    for place, tool in enumerate(tools):
        if tool.get("type") != "function" or not isinstance(tool.get("function"), dict):
            raise wrong(f"tools.{place}.type", "must be function, with the function beside it")
        name = cast("Json", tool["function"]).get("name")
        field = f"tools.{place}.function.name"
        if not isinstance(name, str) or not 1 <= len(name) <= MOST_NAME_CHARACTERS:
            raise wrong(field, f"must be a name of 1 to {MOST_NAME_CHARACTERS} characters")
        if name in OWN_TOOLS:
            raise wrong(field, "is a tool of the agent's own; choose another name")
        if name in names:
            raise wrong(field, "is the name of another tool too")
        names.append(name)
    _check_choice(choice, names)
    return tuple(dict(tool) for tool in tools)


def _check_choice(choice: Any, names: Sequence[str]) -> None:
    if choice is None or choice in ("none", "auto"):
        return
    if not names:
        raise wrong("tool_choice", "needs tools to choose from")
    if isinstance(choice, dict):
        chosen = cast("Json", choice)
        function: Any = chosen.get("function")
        if chosen.get("type") == "function" and (
            not isinstance(function, dict) or cast("Json", function).get("name") not in names
        ):
            raise wrong("tool_choice", "must name one of the tools")
