"""Reads and checks the messages of a chat request: history, the user's message, and rounds of tools."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from recollect.api.openai.callers import wrong
from recollect.graph.history import content_text
from recollect.memory.values.frozen import frozen
from recollect.memory.values.text import MOST_MESSAGE_CHARACTERS, message_problem

Json = dict[str, Any]

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
MEDIA = frozenset({"image_url", "input_audio", "file"})
"""Parts of a user's message that the model gets and the memory does not."""


@frozen
class ClientMessages:
    """A request's messages: `message` is the last user message's text, `content` its parts where not only text.

    `history` precedes it, `rounds` follow it. Content that is text alone is one string, and `developer` becomes
    `system`.
    """

    history: tuple[Json, ...]
    message: str
    content: list[Json] | None
    rounds: tuple[Json, ...]


def read_messages(messages: Sequence[Mapping[str, Any]], *, most: int = MOST_MESSAGE_CHARACTERS) -> ClientMessages:
    """Split the messages; the user's one has at most `most` characters.

    Raises:
        InvalidRequest: names the first field that is wrong.
    """
    read = [_message(f"messages.{place}", message) for place, message in enumerate(messages)]
    return split_messages(read, [f"messages.{place}" for place in range(len(read))], field="messages", most=most)


def split_messages(read: Sequence[Json], fields: Sequence[str], *, field: str, most: int) -> ClientMessages:
    """Split messages that were read; `fields` name where each came from, and `field` all of them.

    Raises:
        InvalidRequest: there is none of the user's, it is too long, or a call of tools lacks its result.
    """
    _check_calls(read, fields)
    users = [place for place, message in enumerate(read) if message["role"] == "user"]
    if not users:
        raise wrong(field, "must have a message of the role user")
    last = users[-1]
    content: str | list[Json] = read[last]["content"]
    text = content_text(content)
    problem = message_problem(text, most=most)
    if problem is not None:
        raise wrong(f"{fields[last]}.content", problem)
    parts = content if isinstance(content, list) else None
    return ClientMessages(tuple(read[:last]), text, parts, tuple(read[last + 1 :]))


def _message(field: str, message: Mapping[str, Any]) -> Json:
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise wrong(f"{field}.role", "must be system, developer, user, assistant or tool")
    content = _content(f"{field}.content", message.get("content"), role)
    read: Json = {"role": "system" if role == "developer" else role, "content": content}
    if role == "tool":
        read["tool_call_id"] = _text(f"{field}.tool_call_id", message.get("tool_call_id"))
    if role == "assistant" and message.get("tool_calls"):
        read["tool_calls"] = list(_calls(f"{field}.tool_calls", message["tool_calls"]))
    return read


def _content(field: str, content: Any, role: str) -> str | list[Json]:
    if isinstance(content, str):
        return content
    if content is None and role == "assistant":
        return ""
    if not isinstance(content, list):
        raise wrong(field, "is missing" if content is None else "must be a string or a list of parts")
    parts = [
        _part(f"{field}.{place}", part, is_users=role == "user")
        for place, part in enumerate(cast("list[Any]", content))
    ]
    return parts if any(part["type"] != "text" for part in parts) else content_text(parts)


def _part(field: str, part: Any, *, is_users: bool) -> Json:
    shown = _object(field, part)
    kind = shown.get("type")
    if kind == "text":
        return {"type": "text", "text": _text(f"{field}.text", shown.get("text"))}
    if kind == "refusal" and not is_users:
        return {"type": "text", "text": _text(f"{field}.refusal", shown.get("refusal"))}
    if is_users and isinstance(kind, str) and kind in MEDIA and isinstance(shown.get(kind), dict):
        return dict(shown)
    raise wrong(field, "must be a part of text, or in a user's message of image_url, input_audio or file")


def _calls(field: str, calls: Any) -> Iterator[Json]:
    if not isinstance(calls, list):
        raise wrong(field, "must be a list of calls")
    for place, call in enumerate(cast("list[Any]", calls)):
        at = f"{field}.{place}"
        shown = _object(at, call)
        function = _object(f"{at}.function", shown.get("function"))
        yield {
            "id": _text(f"{at}.id", shown.get("id")),
            "type": "function",
            "function": {
                "name": _text(f"{at}.function.name", function.get("name")),
                "arguments": _text(f"{at}.function.arguments", function.get("arguments")),
            },
        }


def _check_calls(messages: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> None:
    """Check that every tool call is followed by its result and every result has its call, as models demand."""
    asked, unanswered = 0, set[str]()
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in unanswered:
                raise wrong(f"{fields[place]}.tool_call_id", "answers no tool call of the message before it")
            unanswered.discard(message["tool_call_id"])
            continue
        if unanswered:
            break
        asked, unanswered = place, {call["id"] for call in message.get("tool_calls", ())}
    if unanswered:
        raise wrong(f"{fields[asked]}.tool_calls", "must be followed by a message of the role tool for each call")


def _object(field: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise wrong(field, "is missing" if value is None else "must be an object")
    return cast("Mapping[str, Any]", value)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong(field, "is missing" if value is None else "must be a string")
    return value
