"""Converts an export's lines to Markdown files, one for each fact, turn, thread and document, and back exactly.

* `<user>/documents/<document>.md`, `<user>/facts/<fact>.md`
* `<user>/<thread>/summary.md`: the thread, and its summary as the text
* `<user>/<thread>/client_records/<record>.md`: what OpenAI's clients left open, its content as JSON
* `<user>/<thread>/turns/<turn>.md`, and the thread's own facts in `<user>/<thread>/facts/<fact>.md`
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from recollect.memory.transfer.export_lines import Line
from recollect.memory.transfer.file_names import file_name
from recollect.memory.transfer.front_matter import NoFrontMatter, from_markdown, to_markdown_file
from recollect.memory.values.frozen import frozen

_SEPARATOR = "<!-- assistant -->"
_MESSAGE = ("timestamp", "name", "message_id", "metadata", "agent_id", "further")
_ROLES = ("user", "assistant")


@frozen
class MarkdownFile:
    """Holds one file: its path with "/" between the parts, and its bytes."""

    path: str
    content: bytes


@dataclass
class MarkdownFiles:
    """Makes files from an export's lines, which come in the export's order."""

    _messages: list[Line] = field(init=False, default_factory=list[Line])
    _thread: Line | None = field(init=False, default=None)
    _parts: list[Line] = field(init=False, default_factory=list[Line])

    def take(self, lines: Iterable[Line]) -> Iterator[MarkdownFile]:
        """Yield the files that these lines complete."""
        for line in lines:
            kind = line["type"]
            if kind == "summary":
                thread, self._thread = self._thread, None
                yield _thread_file(thread or line, line)
                continue
            yield from self.end()
            if kind == "message":
                self._messages.append(line)
            elif kind == "turn":
                messages, self._messages = self._messages, []
                yield _turn_file(line, messages)
            elif kind == "thread":
                self._thread = line
            elif kind == "fact":
                yield _fact_file(line)
            elif kind == "client_record":
                yield _record_file(line)
            else:
                self._parts.append(line)
                if line["is_last"]:
                    parts, self._parts = self._parts, []
                    yield _document_file(parts)

    def end(self) -> Iterator[MarkdownFile]:
        """Yield the file of the thread that waits for a summary: it has none."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            yield _thread_file(thread, None)


def markdown_lines(content: bytes) -> list[dict[str, Any]]:
    """Return the lines of one file.

    Raises:
        NoFrontMatter: it is no file of an export; the message is a sentence.
    """
    fields, body = from_markdown(content)
    kind = fields.get("type")
    try:
        if kind == "turn":
            return _turn_lines(fields, body)
        if kind == "thread":
            return _thread_lines(fields, body)
        if kind == "fact":
            return [_with_text(fields, body)]
        if kind == "client_record":
            return [{**fields, "content": json.loads(body)}]
        if kind == "document":
            return [_document_line(fields, body)]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        raise NoFrontMatter("The front matter lacks a field, or has one of a wrong kind.") from None
    raise NoFrontMatter("type must be one of fact, turn, thread, document and client_record.")


def _folder(line: Line, *more: str) -> str:
    return "/".join((file_name(line["user_id"]), *more))


def _fact_file(line: Line) -> MarkdownFile:
    is_note = line["key"] is None
    text = "statement" if is_note else "value"
    fields = {name: value for name, value in line.items() if name != text}
    home = (file_name(line["thread_id"]),) if line["scope"] == "thread" else ()
    return MarkdownFile(_folder(line, *home, "facts", f"{line['id']}.md"), to_markdown_file(fields, line[text]))


def _with_text(fields: dict[str, Any], body: str) -> dict[str, Any]:
    return {**fields, "statement" if fields["key"] is None else "value": body}


def _record_file(line: Line) -> MarkdownFile:
    """Return a file with the record's content as JSON: it is a program's, and no text to be read."""
    fields = {name: value for name, value in line.items() if name != "content"}
    name = file_name(line["id"].replace("/", "-"))
    path = _folder(line, file_name(line["thread_id"]), "client_records", f"{name}.md")
    return MarkdownFile(path, to_markdown_file(fields, json.dumps(line.get("content", {}), ensure_ascii=False)))


def _thread_file(thread: Line, summary: Line | None) -> MarkdownFile:
    fields = {**thread, "type": "thread"}
    if summary is not None:
        fields["summary_by"] = summary["by"]
    path = _folder(thread, file_name(thread["thread_id"]), "summary.md")
    return MarkdownFile(path, to_markdown_file(fields, "" if summary is None else summary["content"]))


def _thread_lines(fields: dict[str, Any], body: str) -> list[dict[str, Any]]:
    by = fields.pop("summary_by", None)
    whose = {"user_id": fields["user_id"], "thread_id": fields["thread_id"]}
    return [fields] if by is None else [fields, {"type": "summary", **whose, "content": body, "by": by}]


def _turn_file(turn: Line, messages: Sequence[Line]) -> MarkdownFile:
    by_role = {line["role"]: line for line in messages}
    texts = [by_role[role]["content"] for role in _ROLES if role in by_role]
    separator = _separator(texts) if len(texts) > 1 else None
    fields: dict[str, Any] = {name: turn[name] for name in ("type", "user_id", "thread_id", "turn_id", "position")}
    for role, line in by_role.items():
        fields[role] = {name: line[name] for name in _MESSAGE if name in line}
    if separator is not None:
        fields["separator"] = separator
    fields |= {name: turn[name] for name in ("absent", "result", "update") if name in turn}
    path = _folder(turn, file_name(turn["thread_id"]), "turns", f"{file_name(turn['turn_id'])}.md")
    return MarkdownFile(path, to_markdown_file(fields, f"\n{separator}\n".join(texts)))


def _separator(texts: Sequence[str]) -> str:
    """Return a line that none of the texts contains."""
    number, separator = 1, _SEPARATOR
    while any(separator in text for text in texts):
        number += 1
        separator = f"<!-- assistant {number} -->"
    return separator


def _turn_lines(fields: dict[str, Any], body: str) -> list[dict[str, Any]]:
    separator = fields.pop("separator", None)
    said = {role: fields.pop(role) for role in _ROLES if role in fields}
    texts = [body] if separator is None else body.split(f"\n{separator}\n", 1)
    if len(texts) != len(said):
        raise NoFrontMatter("The line that separates the turn's messages is missing.")
    whose = {name: fields[name] for name in ("user_id", "thread_id", "turn_id")}
    messages = [
        {"type": "message", **whose, **cast("dict[str, Any]", own), "role": role, "content": text}
        for (role, own), text in zip(said.items(), texts, strict=True)
    ]
    return [*messages, fields]


def _document_file(parts: Sequence[Line]) -> MarkdownFile:
    """Return a file with the document's whole text; the front matter has the lengths of its passages."""
    passages = [passage for part in parts for passage in part["passages"]]
    fields = {name: value for name, value in parts[0].items() if name not in {"part", "is_last", "passages"}}
    fields["passages"] = [
        {"characters": len(passage["text"]), **{name: passage[name] for name in ("page",) if name in passage}}
        for passage in passages
    ]
    path = _folder(parts[0], "documents", f"{parts[0]['id']}.md")
    return MarkdownFile(path, to_markdown_file(fields, "".join(passage["text"] for passage in passages)))


def _document_line(fields: dict[str, Any], body: str) -> dict[str, Any]:
    passages: list[dict[str, Any]] = []
    place = 0
    for passage in cast("list[Mapping[str, Any]]", fields["passages"]):
        length = passage["characters"]
        if not isinstance(length, int) or not 0 < length <= len(body) - place:
            raise NoFrontMatter("The passages of the document are not those of its text.")
        pages = {name: passage[name] for name in ("page",) if name in passage}
        passages.append({"text": body[place : place + length], **pages})
        place += length
    if place != len(body):
        raise NoFrontMatter("The passages of the document are not those of its text.")
    return {**fields, "part": 1, "is_last": True, "passages": passages}
