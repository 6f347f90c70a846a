"""Converts messages and facts of other programs to the fields of import lines. Liberal in what it takes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, cast

from recollect.memory.language.folding import nfkd
from recollect.memory.transfer.import_line import MOST_ID_CHARACTERS
from recollect.memory.values.fact_limits import (
    MOST_STATEMENT_CHARACTERS,
    MOST_TAG_CHARACTERS,
    MOST_TAGS,
    MOST_VALUE_CHARACTERS,
)
from recollect.memory.values.frozen import frozen

Record = Mapping[str, Any]

USER = ("user_id", "userId", "user")
THREAD = (
    "thread_id",
    "session_id",
    "conversation_id",
    "threadId",
    "sessionId",
    "conversationId",
    "chat_id",
    "SessionId",
)
TIME = ("timestamp", "created_at", "ts", "time", "date", "createdAt", "datetime", "updated_at", "last_updated")
ID = ("message_id", "messageId", "_id", "id", "uuid")
_SPEAKER = ("sender", "speaker", "author", "from")
_CONTENT = ("content", "message", "text", "body", "page_content")
_ASKED = ("user_message", "user_input", "human", "question", "query", "prompt", "user", "input", "message")
_ANSWERED = (
    *("ai_response", "assistant_response", "assistant_message", "assistant", "response", "answer", "reply", "ai"),
    *("bot", "output"),
)
_ROLES = {
    **dict.fromkeys(("user", "human", "humanmessage", "customer", "you", "me"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "aimessage", "aimessagechunk", "bot", "agent", "model", "chatbot"), "assistant"
    ),
}
_OTHERS = frozenset({"system", "systemmessage", "developer", "tool", "toolmessage", "function", "tool_result"})
_EXCHANGE = re.compile(r"\s*(?:User|Human): (?P<user>.*?)\n(?:Assistant|AI): (?P<assistant>.*)", re.DOTALL)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
_KEY_PART = re.compile(r"[a-z0-9]+")


@frozen
class Home:
    """Holds the user, thread and time (UTC) of a record that names none itself."""

    user_id: str | None = None
    thread_id: str | None = None
    time: datetime | None = None
    number: int = 0
    """The record's place in its thread: it orders records of one time, and gives each an id."""


def messages_of(record: Record, home: Home) -> list[dict[str, Any]]:
    """Return the fields of a record's messages: one, or a question with its answer; none for a system message."""
    record = _unwrapped(record)
    role, name = _speaker(record)
    pair = _pair(record) if role is None else None
    if pair is not None:
        said = zip(("user", "assistant"), pair, strict=True)
        return [_fields(record, home, one, text) for one, text in said if text]
    if role in _OTHERS:
        return []
    fields = _fields(record, home, None, plain_text(_first(record, _CONTENT)))
    if role is not None:
        fields["role"] = role
    return [fields if name is None else {**fields, "name": name}]


def _unwrapped(record: Record) -> Record:
    """Return the record with the fields of the object inside it that some programs write the message to."""
    inner = next(
        (record[name] for name in ("data", "message", "kwargs") if isinstance(record.get(name), Mapping)), None
    )
    if inner is None or not ("content" in inner or "text" in inner):
        return record
    return {**record, "message": None, **cast("Record", inner)}


def _speaker(record: Record) -> tuple[str | None, str | None]:
    """Return the speaker's role and name. Between people, where no role is given, all are users with names."""
    name = record.get("name")
    name = name if isinstance(name, str) and name else None
    role = record.get("role")
    if isinstance(role, str):
        folded = role.strip().lower()
        return _ROLES.get(folded, folded), name
    told = [record[field] for field in ("type", *_SPEAKER) if isinstance(record.get(field), str)]
    known = next((one.strip().lower() for one in told if one.strip().lower() in {*_ROLES, *_OTHERS}), None)
    if known is not None:
        return _ROLES.get(known, known), name
    speaker = _first(record, _SPEAKER)
    is_person = isinstance(speaker, str) and speaker.strip() and _first(record, _CONTENT) is not None
    return ("user", name or speaker.strip()) if is_person else (None, name)


def split_exchange(text: str) -> tuple[str, str] | None:
    """Return the texts of user and assistant in "User: … Assistant: …", each on lines of its own; None otherwise."""
    found = _EXCHANGE.fullmatch(text)
    return (found["user"], found["assistant"]) if found else None


def facts_of(facts: Record, *, user_id: str | None, time: object = None) -> Iterator[dict[str, Any]]:
    """Yield the fields of the facts in one mapping of key and value."""
    for name, value in facts.items():
        text = plain_text(value)
        if not text.strip():
            continue
        key = fact_key(str(name))
        if key is None or len(text) > MOST_VALUE_CHARACTERS:
            yield note_fields(f"{name}: {text}"[:MOST_STATEMENT_CHARACTERS], user_id=user_id, time=time)
        else:
            yield {**note_fields(text, user_id=user_id, time=time), "key": key}


def note_fields(statement: str, *, user_id: str | None, time: object = None) -> dict[str, Any]:
    """Return the fields of a note."""
    line: dict[str, Any] = {"kind": "fact", "value": statement}
    if user_id is not None:
        line["user_id"] = user_id
    return line if time is None else {**line, "timestamp": plain(time)}


def tags_of(record: Record) -> dict[str, Any]:
    """Return the field of a fact's tags, where the record has any: a list of them, or a text with commas."""
    said = record.get("tags")
    named: Sequence[object] = ()
    if isinstance(said, str):
        named = said.split(",")
    elif isinstance(said, list | tuple):
        named = cast("Sequence[object]", said)
    tags = dict.fromkeys(plain_text(tag).strip() for tag in named)
    kept = [tag for tag in tags if 0 < len(tag) <= MOST_TAG_CHARACTERS][:MOST_TAGS]
    return {"tags": kept} if kept else {}


def fact_key(name: str) -> str | None:
    """Return the name as a fact's key ("Favourite Color" as favourite_color); None where nothing usable is left."""
    ascii_name = nfkd(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).encode("ascii", "ignore")
    key = "_".join(_KEY_PART.findall(ascii_name.decode().lower()))[:64]
    return key if key[:1].isalpha() else None


def thread_name(text: str) -> str:
    """Return the text as a thread's id: itself if it is plain, else with "-" for other characters and a digest.

    Fewer characters are plain than ids may have (no + | ~ =), so that threads of earlier imports keep their ids.
    """
    if _PLAIN_NAME.fullmatch(text) and text not in {".", ".."}:
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9._:@-]+', '-', text)[:100]}-{digest}"


def first_text(record: Record, names: Sequence[str]) -> str | None:
    """Return the first field in `names` that has a value, as text; None for a list or an object."""
    value = scalar(_first(record, names))
    return None if value is None else str(value)


def scalar(value: object) -> str | int | float | None:
    """Return the value if it is one text or number, else None; MongoDB's extended JSON is unpacked."""
    if isinstance(value, Mapping) and len(cast("Mapping[object, object]", value)) != 1:
        return None
    if isinstance(value, list | tuple | set):
        return None
    made = plain(cast("object", value))
    return made if isinstance(made, str | int | float) else None


def plain(value: object) -> Any:
    """Return the value as plain JSON: times in ISO 8601, other objects as text, MongoDB's extended JSON unpacked."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).isoformat()
    if isinstance(value, Mapping):
        inner = cast("Mapping[object, object]", value)
        if len(inner) == 1:
            (key, only), *_ = inner.items()
            if key in {"$oid", "$date", "$numberLong", "$numberInt"}:
                return int(str(only)) if str(key).startswith("$number") else plain(only)
        return {str(key): plain(item) for key, item in inner.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[object]", value)]
    return str(value)


def plain_text(value: object) -> str:
    """Return the value for a person: the texts of a list of parts, a list of values with commas, else JSON."""
    value = plain(value)
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(isinstance(item, dict) for item in items):
            texts = [item["text"] for item in items if isinstance(item.get("text"), str)]
            if texts:
                return "\n".join(texts)
        elif all(isinstance(item, str | int | float) for item in items):
            return ", ".join(map(str, items))
    return json.dumps(value, ensure_ascii=False)


def _pair(record: Record) -> tuple[str, str] | None:
    asked, answered = _first(record, _ASKED), _first(record, _ANSWERED)
    if answered is not None and (asked is None or isinstance(asked, str)):
        return asked or "", plain_text(answered)
    content = _first(record, ("content", "page_content", "text"))
    return split_exchange(content) if isinstance(content, str) else None


def _fields(record: Record, home: Home, role: str | None, content: str) -> dict[str, Any]:
    """Return the fields of one message; what neither record nor `home` gives is missing, and the import names it."""
    fields: dict[str, Any] = {"content": content, "message_id": _message_id(record, home, role)}
    # In a record of question and answer, "user" may be what the user said.
    user_id = first_text(record, USER if role is None else USER[:2]) or home.user_id
    thread_id = first_text(record, THREAD) or home.thread_id
    if user_id:
        fields["user_id"] = user_id
    if thread_id:
        fields["thread_id"] = thread_name(thread_id)
    if role is not None:
        fields["role"] = role
    time = scalar(_first(record, TIME))
    if time is not None:
        fields["timestamp"] = time
    elif home.time is not None:
        # Add its place in milliseconds: messages without times keep their order.
        fields["timestamp"] = (home.time + timedelta(milliseconds=home.number)).isoformat()
    metadata = record.get("metadata")
    return {**fields, "metadata": plain(cast("Record", metadata))} if isinstance(metadata, Mapping) else fields


def _message_id(record: Record, home: Home, role: str | None) -> str | None:
    """Return the record's own id; without one, and without a time, an id from its place.

    None: the import derives an id from the message's time and text. `role` tells a question from its answer.
    """
    own = first_text(record, ID)
    if own is None:
        if _first(record, TIME) is not None:
            return None
        own = f"{first_text(record, THREAD) or home.thread_id or ''}:{home.number}"
    whole = own if role is None else f"{own}:{role}"
    if 1 <= len(whole) <= MOST_ID_CHARACTERS and "\x00" not in whole:
        return whole
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _first(record: Record, names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)
