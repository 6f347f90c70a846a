"""Reads and checks the lines of an export: strictly, because anybody may have written them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar

from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.transfer.exported import (
    Exported,
    ExportedDocument,
    ExportedMessage,
    ExportedSummary,
    ExportedThread,
    ExportedTurn,
)
from recollect.memory.transfer.exported_update import (
    MOST_EVIDENCE_CHARACTERS,
    MOST_REMARK_CHARACTERS,
    key_problem,
    length_problem,
    sift_update,
    tags_problem,
)
from recollect.memory.transfer.import_line import MOST_ID_CHARACTERS, BadLine, read_time, thread_of_line
from recollect.memory.transfer.plain_values import Unfit, from_plain
from recollect.memory.transfer.record_reading import KeptResponse, check_record
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.fact import Ended, Fact, FactSource
from recollect.memory.values.fact_limits import MOST_STATEMENT_CHARACTERS, MOST_VALUE_CHARACTERS, MOST_VERSIONS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.further_message import MOST_FURTHER
from recollect.memory.values.json_values import json_problem, metadata_problem
from recollect.memory.values.scope import check_id, is_uuid
from recollect.memory.values.times import from_ms, to_ms

MOST_DEPTH = 24
MOST_POSITION = 1_000_000_000
MOST_TITLE_CHARACTERS = 1_000
MOST_SUMMARY_CHARACTERS = 40_000
MOST_CONTENT_CHARACTERS = 1_000_000
"""Length of the longest reply that is stored; a user's message is shorter."""
MOST_DOMAIN_CHARACTERS, MOST_SOURCE_CHARACTERS = 64, 2_000
Line = TypeVar("Line")


@frozen
class _Hit:
    """Lists the fields that code relies on in a recorded hit."""

    id: str
    kind: Literal["episode", "fact", "summary", "document"]
    content: str


@frozen
class _Recalled:
    window: int
    facts: Mapping[str, str]
    summary: str | None
    hits: tuple[_Hit, ...]
    degraded: tuple[str, ...]


@frozen
class _LeftOut:
    """Lists the columns in which a turn keeps the candidates that its search left out."""

    count: int
    ids: tuple[str, ...]
    kinds: tuple[str | None, ...]
    sources: tuple[str | None, ...]
    stages: tuple[str, ...]
    reasons: tuple[str, ...]
    why: tuple[int, ...]
    scores: Mapping[str, tuple[float | None, ...]]


@frozen
class _Block:
    """Lists the columns in which a turn keeps the order of its memory block."""

    tokens: int
    kinds: tuple[str, ...]
    ids: tuple[str | None, ...]
    costs: tuple[int, ...]


@frozen
class _Recorded:
    window_from: int
    left_out: _LeftOut | None = None
    block: _Block | None = None


@frozen
class _Source:
    """Lists the fields that code relies on in what a use of a tool found."""

    id: str
    kind: Literal["episode", "fact", "summary", "document"]
    thread_id: str | None = None
    turn_id: str | None = None


@frozen
class _ToolUse:
    """Lists the fields that code relies on in a use of a tool."""

    id: str
    name: str
    args: Mapping[str, Any]
    content: str
    ms: float | None = None
    error: str | None = None
    found: tuple[_Source, ...] = ()


@frozen
class _Result:
    """Lists the fields that code relies on in a turn's result."""

    model: str | None
    memory: _Recalled
    usage: Mapping[str, int]
    timings_ms: Mapping[str, float]
    tools: tuple[_ToolUse, ...] = ()
    trace: tuple[Mapping[str, Any], ...] | None = None
    recorded: _Recorded | None = None
    response: KeptResponse | None = None
    client_history: str | None = None
    trace_id: str | None = None


@frozen
class _Version:
    """Lists the fields that code relies on in an earlier version of a fact."""

    value: str
    statement: str
    scope: Literal["user", "thread", "global"]
    thread_id: str | None
    turn_id: str | None
    source: FactSource
    importance: float
    pinned: bool
    evidence: str | None
    tags: tuple[str, ...]
    updated_at: datetime
    confirmed_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    ended: Ended
    metadata: Mapping[str, Any] | None = None
    agent_id: str | None = None


class ReadLine(NamedTuple):
    """Holds a line's value, and a sentence for each part of it that was dropped."""

    line: Exported
    dropped: tuple[str, ...] = ()


def read_exported(said: Mapping[str, Any], kind: str) -> ReadLine:
    """Return the value of a line of type `kind` with these fields (without `type`).

    Raises:
        BadLine: a field is missing, unknown, of a wrong type, or none that can be stored.
    """
    said, dropped = sift_update(said) if kind == "turn" else (said, ())
    problem = json_problem(said, MOST_DEPTH)
    if problem is not None:
        raise BadLine(f"The line {problem}.", thread_of_line(said))
    try:
        return ReadLine(_READERS[kind](said), dropped)
    except Unfit as error:
        sentence = f"{error}."
        raise BadLine(sentence[0].upper() + sentence[1:] if sentence.startswith("the ") else sentence) from None


def _message(said: Mapping[str, Any]) -> ExportedMessage:
    line = _of(ExportedMessage, said, "turn_id")
    _check_length("content", line.content, MOST_CONTENT_CHARACTERS)
    for name, text in (("name", line.name), ("message_id", line.message_id)):
        if text is not None and not 1 <= len(text) <= MOST_ID_CHARACTERS:
            raise Unfit(f"{name} must have 1 to {MOST_ID_CHARACTERS} characters")
    if len(line.further) > MOST_FURTHER or (line.further and line.role != "user"):
        raise Unfit(f"further are at most {MOST_FURTHER} messages, of a user's message")
    for one in line.further:
        _check_length("further", one.content, MOST_CONTENT_CHARACTERS)
        _check_length("further", one.name, MOST_ID_CHARACTERS)
    further = tuple(_in_milliseconds(one, "created_at") for one in line.further)
    return replace(line, timestamp=read_time(said["timestamp"]), further=further)


def _turn(said: Mapping[str, Any]) -> ExportedTurn:
    line = _of(ExportedTurn, said, "turn_id")
    if not 1 <= line.position <= MOST_POSITION or line.position % 2 == 0:
        raise Unfit(f"position must be an odd number from 1 to {MOST_POSITION:,}")
    if (line.result is None) != (line.update is None):
        raise Unfit("result and update belong together")
    if line.result is not None:
        from_plain(_Result, line.result, path="result", is_open=True)
    if line.absent is not None:
        absent = replace(line.absent, timestamp=read_time(said["absent"]["timestamp"]))
        return replace(line, absent=absent)
    return line


def _thread(said: Mapping[str, Any]) -> ExportedThread:
    line = _of(ExportedThread, said)
    _check_length("title", line.title, MOST_TITLE_CHARACTERS)
    for name, number in (("summarised_to", line.summarised_to), ("archived_to", line.archived_to)):
        if not 0 <= number <= MOST_POSITION:
            raise Unfit(f"{name} must be a number from 0 to {MOST_POSITION:,}")
    _check_revision(line.revision, least=0)
    for document in line.documents:
        _check_ids(id=document.id)
    return _in_milliseconds(line, "summarised_at", "archived_at")


def _summary(said: Mapping[str, Any]) -> ExportedSummary:
    line = _of(ExportedSummary, said)
    if not line.content.strip():
        raise Unfit("content must not be empty")
    _check_length("content", line.content, MOST_SUMMARY_CHARACTERS)
    return line


def _document(said: Mapping[str, Any]) -> ExportedDocument:
    line = _of(ExportedDocument, said, "id")
    _check_length("title", line.title, MOST_TITLE_CHARACTERS)
    _check_length("domain", line.domain, MOST_DOMAIN_CHARACTERS)
    _check_length("source", line.source, MOST_SOURCE_CHARACTERS)
    _check_length("error", line.error, MOST_REMARK_CHARACTERS)
    _check_length("content_hash", line.content_hash, MOST_ID_CHARACTERS)
    if not 1 <= line.part <= MOST_POSITION:
        raise Unfit("part must be a number from 1")
    for passage in line.passages:
        if passage.page is not None and not 1 <= passage.page <= MOST_POSITION:
            raise Unfit("page must be a number from 1")
    return _in_milliseconds(line, "created_at")


def _fact(said: Mapping[str, Any]) -> Fact:
    line = _of(Fact, said)
    _check_uuid("id", line.id)
    if line.replaces is not None:
        _check_uuid("replaces", line.replaces)
    _refuse(key_problem(line.key))
    if line.scope == "global" or (line.scope == "thread" and line.thread_id is None):
        raise Unfit("scope must be user, or thread with a thread_id")
    _check_ids(
        **{name: one for name in ("thread_id", "turn_id", "agent_id") if (one := getattr(line, name)) is not None}
    )
    _check_fact_texts(line)
    if not 0 <= line.importance <= 1:
        raise Unfit("importance must be between 0 and 1")
    if line.valid_to is not None and line.valid_to < line.valid_from:
        raise Unfit("valid_to must not be before valid_from")
    _check_revision(line.revision, least=1)
    if len(line.history) > MOST_VERSIONS:
        raise Unfit(f"history must have at most {MOST_VERSIONS} versions")
    for number, version in enumerate(line.history):
        path = f"history[{number}]"
        _check_version(from_plain(_Version, version, path=path, is_open=True), path)
    line = _in_milliseconds(line, "created_at", "updated_at", "confirmed_at", "valid_from", "valid_to")
    ended = None if line.ended is None else _in_milliseconds(line.ended, "at", "was_valid_to")
    return replace(line, ended=ended, indexed=False)


def _record(said: Mapping[str, Any]) -> ClientRecord:
    line = _of(ClientRecord, said)
    if line.kind == "open_round":
        _check_ids(id=line.id)
    check_record(line)
    return _in_milliseconds(line, "created_at", "expires_at")


def _check_fact_texts(line: Fact) -> None:
    if line.status == "forgotten":
        if (
            line.key is not None
            or line.value
            or line.statement
            or line.evidence
            or line.tags
            or line.metadata
            or line.history
        ):
            raise Unfit("what is forgotten has no text")
        return
    if not line.statement or not line.value:
        raise Unfit("value and statement must not be empty")
    # A fact without a key may have its statement as its value.
    _check_length("value", line.value, MOST_VALUE_CHARACTERS if line.key is not None else MOST_STATEMENT_CHARACTERS)
    _check_length("statement", line.statement, MOST_STATEMENT_CHARACTERS)
    _check_length("evidence", line.evidence, MOST_EVIDENCE_CHARACTERS)
    _check_length("ended.reason", line.ended.reason if line.ended is not None else None, MOST_REMARK_CHARACTERS)
    _refuse(tags_problem(line.tags))
    problem = metadata_problem(dict(line.metadata))
    _refuse(f"metadata {problem}" if problem is not None else None)


def _check_version(version: _Version, path: str) -> None:
    """Check an earlier version like a fact: it may be restored, and is then one."""
    texts: dict[str, tuple[str | None, int]] = {
        "value": (version.value, MOST_STATEMENT_CHARACTERS),
        "statement": (version.statement, MOST_STATEMENT_CHARACTERS),
        "evidence": (version.evidence, MOST_EVIDENCE_CHARACTERS),
        "ended.reason": (version.ended.reason, MOST_REMARK_CHARACTERS),
    }
    problem = length_problem(texts) or tags_problem(version.tags)
    _refuse(f"{path}.{problem}" if problem is not None else None)


def _of(kind: type[Line], said: Mapping[str, Any], *ids: str) -> Line:
    """Return the line's value of type `kind`, with its `ids` checked."""
    line = from_plain(kind, said)
    _check_ids(**{name: getattr(line, name) for name in ("user_id", *ids)})
    thread_id = getattr(line, "thread_id", None)
    if thread_id is not None:
        _check_ids(thread_id=thread_id)
    return line


def _check_ids(**ids: str) -> None:
    for name, value in ids.items():
        try:
            check_id(name, value)
        except InvalidRequest as error:
            raise Unfit(f"{name} {error.problems[0].problem}") from None


def _check_uuid(name: str, text: str) -> None:
    if not is_uuid(text):
        raise Unfit(f"{name} must be a UUID")


def _refuse(problem: str | None) -> None:
    if problem is not None:
        raise Unfit(problem)


def _check_length(name: str, text: str | None, most: int) -> None:
    if text is not None and len(text) > most:
        raise Unfit(f"{name} must have at most {most:,} characters")


def _check_revision(revision: int, *, least: int) -> None:
    if revision < least:
        raise Unfit(f"revision must be {least} or more")


def _in_milliseconds(value: Line, *names: str) -> Line:
    """Return the value with the times in `names` cut to whole milliseconds, as stores keep them."""
    times = {name: time for name in names if (time := getattr(value, name)) is not None}
    return replace(value, **{name: from_ms(to_ms(time)) for name, time in times.items()})  # type: ignore[type-var]


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Exported]] = {
    "message": _message,
    "turn": _turn,
    "thread": _thread,
    "summary": _summary,
    "document": _document,
    "fact": _fact,
    "client_record": _record,
}
