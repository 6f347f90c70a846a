"""The fields of a fact's form: texts, as a browser sends them, and the edit that they mean."""

import re
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field

from recollect.api.inspector.rendering import field_time
from recollect.api.schemas.requests import MOST_TEXT, read_request_time
from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.fact import Fact

LABELS = {
    "key": "Key",
    "value": "Text",
    "statement": "Sentence",
    "tags": "Tags",
    "importance": "Importance",
    "pinned": "Pinned",
    "thread_id": "Only in the thread",
    "valid_from": "Holds from",
    "valid_to": "Holds until",
}
"""Names of the fields, for people."""
_BREAK = re.compile(r"\r\n?")
Text = Annotated[str, Field(max_length=MOST_TEXT)]
TIMES = ("valid_from", "valid_to")


class FactFields(BaseModel):
    """A form's fields, empty ones as "". `value` is the text of a note too; `version` is the one that was shown."""

    key: Text = ""
    value: Text = ""
    statement: Text = ""
    tags: Text = ""
    importance: Text = "0.5"
    pinned: bool = False
    thread_id: Text = ""
    valid_from: Text = ""
    valid_to: Text = ""
    version: Text = ""


def form_fields(fact: Fact) -> FactFields:
    """Return the fields as the form shows them. A keyed fact's sentence is empty: a new value makes another one."""
    return FactFields(
        key=fact.key or "",
        value=fact.text,
        tags="\n".join(fact.tags),
        importance=str(fact.importance),
        pinned=fact.pinned,
        thread_id=fact.home or "",
        valid_from=field_time(fact.valid_from),
        valid_to="" if fact.valid_to is None else field_time(fact.valid_to),
        version=fact.version,
    )


def edit_of(given: FactFields, shown: FactFields) -> FactEdit:
    """Return the edit of the fields in which `given` differs from what was `shown`.

    Raises:
        InvalidRequest: names each field that cannot be read.
    """
    changed = [name for name in LABELS if name != "key" and _plain(given, name) != _plain(shown, name)]
    problems = [Problem(name, problem) for name in changed if (problem := _problem(name, given)) is not None]
    if problems:
        raise InvalidRequest(problems=problems)
    edit: dict[str, Any] = {}
    for name in changed:
        edit |= _read(name, given)
    return cast("FactEdit", edit)


def differences(given: FactFields, stored: FactFields) -> list[tuple[str, str, str]]:
    """Return label, stored text and given text of each field in which the two differ."""
    names = [name for name in LABELS if _plain(given, name) != _plain(stored, name)]
    return [(LABELS[name], _told(stored, name), _told(given, name)) for name in names]


def _told(fields: FactFields, name: str) -> str:
    return ("no", "yes")[fields.pinned] if name == "pinned" else _text(fields, name)


def _plain(fields: FactFields, name: str) -> object:
    """Return a field for comparing: browsers send other line breaks, and times in other forms."""
    if name == "pinned":
        return fields.pinned
    text = _text(fields, name)
    return _time(text) if name in TIMES and text and _problem(name, fields) is None else text


def _problem(name: str, given: FactFields) -> str | None:
    text = _text(given, name)
    try:
        if name == "importance":
            float(text)
        elif name in TIMES and text:
            read_request_time(text)
    except ValueError:
        return "must be between 0 and 1" if name == "importance" else "must be a time such as 2026-01-31T09:30:00Z"
    return "is for facts with a key" if name == "statement" and text and not given.key.strip() else None


def _read(name: str, given: FactFields) -> dict[str, Any]:
    """Return the edit of one field."""
    if name == "pinned":
        return {"pinned": given.pinned}
    text = _text(given, name)
    if name == "value":
        return {"value" if given.key.strip() else "statement": text}
    if name == "tags":
        return {"tags": [tag for tag in map(str.strip, text.split("\n")) if tag]}
    if name == "importance":
        return {"importance": float(text)}
    if name == "thread_id":
        return {"scope": "thread", "thread_id": text} if text else {"scope": "user"}
    return {name: _time(text) if name in TIMES and text else text or None}


def _text(fields: FactFields, name: str) -> str:
    """Return a field's text, with line breaks as they are stored."""
    return _BREAK.sub("\n", str(getattr(fields, name))).strip()


def _time(text: str) -> datetime:
    return read_request_time(text).replace(microsecond=0)
