"""Calls the agent that AGENT names, within CHAT_TIMEOUT_SECONDS, and checks its answer: nothing of it is trusted."""

import asyncio
import inspect
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs]

from recollect.graph.context import LiveContext
from recollect.graph.own_agent.compiled import follow_graph, reads_messages
from recollect.graph.own_agent.generator import follow_generator
from recollect.graph.prompts import prompt_of
from recollect.graph.spoken import Spoken
from recollect.graph.state import Json, State
from recollect.graph.tool_uses import ToolUses
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable, RecollectError

logger = logging.getLogger(__name__)


async def call_own(state: State, live: LiveContext, spoken: Spoken) -> Json:
    """Return one round's checked answer: `reply`, `tool_calls`, `model`, `usage`, `tool_uses` and `block`.

    What the agent says is shown as it comes, where it comes in pieces, else at the end.

    Raises:
        ModelTimeout: it did not end in time.
        ModelUnavailable: it raised, or answered something else than an agent does.
    """
    services = live.services
    uses = ToolUses(state["tool_uses"], live.listener)
    try:
        async with asyncio.timeout(services.memory.config.chat_timeout_seconds) as limit:
            answer = await _asked(state, live, spoken, uses, limit)
    except TimeoutError as error:
        raise ModelTimeout from error
    except RecollectError:
        raise
    except Exception as error:
        # Foreign code may raise anything; the caller sees a model that failed.
        logger.exception("the AGENT raised", extra={"action": "agent_failed", "error": type(error).__name__})
        raise ModelUnavailable(
            f"The agent {services.agent_name} raised {type(error).__name__}; the log has the details.", outage=False
        ) from error
    if not isinstance(answer, Mapping):
        raise ModelUnavailable(f"The agent {services.agent_name} returned no dict.", outage=False)
    checked = _checked(cast(Mapping[str, Any], answer), services.agent_name)
    if checked["reply"] and not spoken.text:
        spoken.say(checked["reply"])
    return {**checked, "tool_uses": uses.kept()}


async def _asked(state: State, live: LiveContext, spoken: Spoken, uses: ToolUses, limit: asyncio.Timeout) -> Any:
    given, agent = cast(Json, dict(state)), cast(Any, live.services.agent)
    if inspect.isasyncgenfunction(agent):
        return await follow_generator(agent(given), spoken, uses, limit)
    if isinstance(agent, Pregel):
        prompt = await prompt_of(state, live.services, live.chat) if reads_messages(agent) else None
        return await follow_graph(agent, given, prompt, spoken, uses)
    return await (agent.ainvoke(given) if hasattr(agent, "ainvoke") else agent(given))


def _checked(answer: Mapping[str, Any], name: str) -> Json:
    reply = answer.get("reply")
    calls = cast(Sequence[Mapping[str, Any]], answer.get("tool_calls") or [])
    usage = cast(Mapping[str, Any], answer.get("usage") or {})
    if reply is not None and not isinstance(reply, str):
        raise ModelUnavailable(f"The agent {name} returned a reply that is no text.", outage=False)
    try:
        checked: list[Json] = [
            {"id": str(call["id"]), "name": str(call["name"]), "args": json.loads(json.dumps(dict(call["args"])))}
            for call in calls
        ]
        tokens = {field: int(usage.get(field) or 0) for field in ("input_tokens", "output_tokens")}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelUnavailable(
            f"The agent {name} returned tool_calls or usage in another form than [{{id, name, args}}] and "
            "{input_tokens, output_tokens}.",
            outage=False,
        ) from error
    block = answer.get("block")
    return {
        "reply": reply,
        "tool_calls": checked,
        "model": str(answer.get("model") or name),
        "usage": tokens,
        "block": block if isinstance(block, dict) else None,
    }
