"""Reads a response's input items into chat messages.

Calls in a row are one message of the assistant, because models want all results right behind the message that asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from recollect.api.openai.callers import wrong
from recollect.graph.history import content_text

Json = dict[str, Any]

ROLES = frozenset({"system", "developer", "user", "assistant"})
OUTPUT_ONLY = frozenset({"reasoning"})
"""Items that clients send back and that say nothing to another model."""
NO_TEXT = "[A part that is no text was left out.]"
_TEXTS = frozenset({"input_text", "output_text", "text"})


@dataclass
class ReadItems:
    """Chat messages, the field that each came from, and the item ids of calls by the ids of their calls."""

    messages: list[Json] = field(default_factory=list[Json])
    fields: list[str] = field(default_factory=list[str])
    items: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, message: Json, at: str) -> None:
        """Add a message that came from the field `at`."""
        self.messages.append(message)
        self.fields.append(at)

    def add_call(self, call: Json, at: str) -> None:
        """Add a call to the message of the assistant that it stands behind, or a new one."""
        last = self.messages[-1] if self.messages else None
        if last is not None and last["role"] == "assistant" and isinstance(last["content"], str):
            last["tool_calls"] = [*last.get("tool_calls", ()), call]
        else:
            self.add({"role": "assistant", "content": "", "tool_calls": [call]}, at)


def read_items(
    given: str | Sequence[Mapping[str, Any]], read: ReadItems | None = None, *, field: str = "input"
) -> ReadItems:
    """Read the input, behind what was `read` before it. References are resolved by then; errors name `field`.

    Raises:
        InvalidRequest: names the first field that is wrong.
    """
    read = read or ReadItems()
    if isinstance(given, str):
        read.add({"role": "user", "content": given}, field)
        return read
    for place, item in enumerate(given):
        _item(f"{field}.{place}", item, read)
    return read


def _item(at: str, item: Mapping[str, Any], read: ReadItems) -> None:
    kind = item.get("type") or ("message" if "role" in item else None)
    if kind == "message":
        read.add(_message(at, item), at)
    elif kind == "function_call":
        call = _call(at, item)
        if isinstance(item.get("id"), str):
            read.items[item["id"]] = call["id"]
        read.add_call(call, at)
    elif kind == "function_call_output":
        result = _output(f"{at}.output", item.get("output"))
        read.add({"role": "tool", "tool_call_id": _text(f"{at}.call_id", item.get("call_id")), "content": result}, at)
    elif kind not in OUTPUT_ONLY:
        raise wrong(f"{at}.type", "must be message, function_call, function_call_output, item_reference or reasoning")


def _message(at: str, item: Mapping[str, Any]) -> Json:
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise wrong(f"{at}.role", "must be user, assistant, system or developer")
    content = item.get("content")
    if not isinstance(content, str):
        parts = [
            _part(f"{at}.content.{place}", part, is_users=role == "user")
            for place, part in enumerate(_list(f"{at}.content", content))
        ]
        content = parts if any(part["type"] != "text" for part in parts) else content_text(parts)
    return {"role": "system" if role == "developer" else role, "content": content}


def _part(at: str, part: Any, *, is_users: bool) -> Json:
    said = _object(at, part)
    kind = said.get("type")
    if kind in _TEXTS or kind == "refusal":
        name = "refusal" if kind == "refusal" else "text"
        return {"type": "text", "text": _text(f"{at}.{name}", said.get(name))}
    if kind == "input_image" and is_users:
        url = said.get("image_url")
        detail = {"detail": said["detail"]} if isinstance(said.get("detail"), str) else {}
        return {"type": "image_url", "image_url": {"url": _own(f"{at}.image_url", url), **detail}}
    if kind == "input_file" and is_users:
        name = {"filename": said["filename"]} if isinstance(said.get("filename"), str) else {}
        return {"type": "file", "file": {**name, "file_data": _own(f"{at}.file_data", said.get("file_data"))}}
    if kind == "input_audio" and is_users and isinstance(said.get("input_audio"), dict):
        return {"type": "input_audio", "input_audio": dict(said["input_audio"])}
    raise wrong(at, "must be a part of text, or in a user's message of input_image, input_file or input_audio")


def _own(at: str, value: Any) -> str:
    """Return content that the request carries itself: the service keeps no files that an id could name."""
    if not isinstance(value, str):
        raise wrong(at, "is missing; the service keeps no files, so that file_id and file_url name none")
    return value


def _call(at: str, item: Mapping[str, Any]) -> Json:
    name, arguments = _text(f"{at}.name", item.get("name")), _text(f"{at}.arguments", item.get("arguments"))
    function = {"name": name, "arguments": arguments}
    return {"id": _text(f"{at}.call_id", item.get("call_id")), "type": "function", "function": function}


def _output(at: str, output: Any) -> str:
    """Return the text of a call's result. Other parts leave a mark, because a result is text for most models."""
    if isinstance(output, str):
        return output
    parts = [_object(f"{at}.{place}", part) for place, part in enumerate(_list(at, output))]
    texts = [part.get("text") if part.get("type") in _TEXTS else NO_TEXT for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def _list(at: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise wrong(at, "is missing" if value is None else "must be a string or a list of parts")
    return cast("list[Any]", value)


def _object(at: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise wrong(at, "must be an object")
    return cast("Mapping[str, Any]", value)


def _text(at: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong(at, "is missing" if value is None else "must be a string")
    return value
