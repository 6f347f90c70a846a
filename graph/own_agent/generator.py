"""Follows an agent that is an async generator: pieces of the reply, its tools' calls and results, last its dict."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any, cast

from recollect.graph.spoken import Spoken
from recollect.graph.state import Json
from recollect.graph.tool_uses import ToolUses
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable

CLOSING_SECONDS = 1.0
"""How long a generator that is left early may take to clean up."""
FAILED = "The tool failed."


async def follow_generator(
    items: AsyncGenerator[Any, None], spoken: Spoken, uses: ToolUses, limit: asyncio.Timeout
) -> Json:
    """Take all items and return the last one, the answer; without a `reply` of its own it has the pieces as that.

    Raises:
        ModelUnavailable: it yields something else, or ends without its answer.
        ModelTimeout: it goes on beyond `limit` although it was cancelled.
    """
    answer: Json | None = None
    try:
        async for item in items:
            # A generator that never waits would hold up every other task, and with them its own time limit.
            await asyncio.sleep(0)
            if limit.expired():
                raise ModelTimeout
            if answer is not None:
                raise _wrong("yielded more after its answer; the dict without a token comes last")
            answer = _taken(item, spoken, uses)
    finally:
        await close(items)
    if answer is None:
        raise _wrong("ended without its answer; the last item is a dict such as {'reply': …}")
    if answer.get("reply") is None and not answer.get("tool_calls"):
        answer["reply"] = spoken.text or None
    return answer


async def close(items: AsyncGenerator[Any, None]) -> None:
    """Close a foreign generator; whatever it raises or refuses by then is its own affair."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSING_SECONDS):
            await items.aclose()


def _taken(item: object, spoken: Spoken, uses: ToolUses) -> Json | None:
    """Show an item, and return it if it is the answer."""
    if not isinstance(item, Mapping):
        raise _wrong(f"yielded {type(item).__name__}, which is no dict")
    given = cast("Mapping[str, Any]", item)
    if "token" in given:
        if not isinstance(given["token"], str):
            raise _wrong("yielded a token that is no text")
        spoken.say(given["token"])
    elif "tool_call" in given:
        call_id, name, args = _fields(given["tool_call"], "args", Mapping)
        uses.begin(call_id, name, args)
    elif "tool_result" in given:
        call_id, _, content = _fields(given["tool_result"], "content", str)
        uses.end(call_id, content, error=FAILED if given["tool_result"].get("error") else None)
    else:
        return dict(given)
    return None


def _fields(value: Any, last: str, kind: type) -> tuple[str, str, Any]:
    """Return a call's or a result's id, name and `last` field."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    found = fields.get("id"), fields.get("name"), fields.get(last)
    if not isinstance(found[0], str) or not isinstance(found[1], str) or not isinstance(found[2], kind):
        raise _wrong(f"yielded a tool_call or tool_result in another form than {{id, name, {last}}}")
    return found[0], found[1], found[2]


def _wrong(what: str) -> ModelUnavailable:
    return ModelUnavailable(f"The agent that AGENT names {what}.", outage=False)
