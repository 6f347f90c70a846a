"""An exchange as an agent elsewhere gives it, and the rules of its texts."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.frozen import frozen
from recollect.memory.values.further_message import MOST_FURTHER, FurtherMessage
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import ID_RULE, is_id
from recollect.memory.values.text import message_problem, text_problem

MOST_AT_ONCE = 100
"""The most exchanges of one call."""
MOST_NAME_CHARACTERS = 128


@frozen
class SaidMessage:
    """One side of an exchange; `created_at` (UTC) None: now, or for a reply the time of its message."""

    content: str
    name: str | None = None
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class GivenExchange:
    """An exchange as it is given: `assistant` None stands for no reply; without `learn` it teaches nothing.

    `agent_id` labels its turn. `is_unasked`: the reply came without a message of the user; `user` has no text then.
    """

    user: SaidMessage
    assistant: SaidMessage | None = None
    turn_id: str | None = None
    messages: tuple[FurtherMessage, ...] = ()
    learn: bool = True
    agent_id: str | None = None
    is_unasked: bool = False


def exchange_problems(config: MemoryConfig, given: GivenExchange, place: str = "") -> list[Problem]:
    """Return what no store can hold; `place` ("1.") stands before the fields' names."""
    most, longest = config.max_message_characters, config.max_reply_characters
    asked = None if given.is_unasked else message_problem(given.user.content, most=most)
    told: list[tuple[str, str | None]] = [("user.content", asked)]
    named = [("user", given.user.name)]
    if given.assistant is not None:
        told.append(("assistant.content", message_problem(given.assistant.content, most=longest)))
        named.append(("assistant", given.assistant.name))
    if len(given.messages) > MOST_FURTHER:
        told.append(("messages", f"must be at most {MOST_FURTHER}"))
    for number, one in enumerate(given.messages):
        problem = text_problem(one.content) if len(one.content) <= most else f"must have at most {most:,} characters"
        told.append((f"messages.{number}.content", problem))
        named.append((f"messages.{number}", one.name))
    told += [(f"{where}.name", _name_problem(name)) for where, name in named]
    problems = [Problem(f"{place}{where}", problem) for where, problem in told if problem is not None]
    ids = {"turn_id": given.turn_id, "agent_id": given.agent_id}
    wrong = [name for name, value in ids.items() if value is not None and not is_id(value)]
    return problems + [Problem(f"{place}{name}", f"must be {ID_RULE} and not '.' or '..'") for name in wrong]


def check_count(exchanges: Sequence[object]) -> None:
    """Check that one call may hold so many exchanges.

    Raises:
        InvalidRequest: they are none, or too many.
    """
    if not 1 <= len(exchanges) <= MOST_AT_ONCE:
        problem = f"must be 1 to {MOST_AT_ONCE} exchanges"
        raise InvalidRequest("The request is not valid: see body.", problems=[Problem("body", problem)])


def check_exchanges(config: MemoryConfig, given: Sequence[tuple[str, GivenExchange]]) -> None:
    """Check exchanges, each with the place that stands before its fields' names.

    Raises:
        InvalidRequest: names each field of theirs that is not valid.
    """
    problems = [problem for place, one in given for problem in exchange_problems(config, one, place)]
    if problems:
        named = ", ".join(dict.fromkeys(problem.field for problem in problems[:5]))
        raise InvalidRequest(f"The request is not valid: see {named}.", problems=problems[:50])


def _name_problem(name: str | None) -> str | None:
    if name is None:
        return None
    if not 1 <= len(name) <= MOST_NAME_CHARACTERS:
        return f"must have 1 to {MOST_NAME_CHARACTERS} characters"
    return text_problem(name)
