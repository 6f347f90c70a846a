"""Calls the agent that AGENT names in place of the built-in one, with a timeout, and checks its answer."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from recollect.graph.resources import Services
from recollect.graph.state import Json, State
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable, RecollectError

logger = logging.getLogger(__name__)


async def call_custom(state: State, services: Services, node: Any) -> Json:
    """Call the agent that AGENT names, and check its answer: nothing that it returns is trusted."""
    given = cast(Json, dict(state))
    try:
        async with asyncio.timeout(services.memory.config.chat_timeout_seconds):
            answer: Any = await (node.ainvoke(given) if hasattr(node, "ainvoke") else node(given))
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
    return _checked(cast(Mapping[str, Any], answer), services.agent_name)


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
    return {"reply": reply, "tool_calls": checked, "model": str(answer.get("model") or name), "usage": tokens}
