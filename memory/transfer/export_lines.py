"""Turns stored values into the lines of an export: plain JSON that `export_reading` reads again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from recollect.memory.facts.fact_history import tombstone
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.transfer.exported import (
    AbsentPlace,
    AttachedDocument,
    ExportedMessage,
    ExportedSummary,
    ExportedThread,
    ExportedTurn,
)
from recollect.memory.transfer.plain_values import to_plain
from recollect.memory.values.document import Attached
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Step, Update

Line = Mapping[str, Any]


def turn_lines(turn: Turn) -> list[Line]:
    """Return the lines of the turn's messages, then the turn's own."""
    message, reply = turn.message, turn.reply
    lines = [_line("message", _message(said), sparse=True) for said in turn.messages]
    missing = next((one for one in (message, reply) if one is not None and one.absent), None)
    shown = ExportedTurn(
        message.user_id,
        message.thread_id,
        message.turn_id,
        message.position,
        absent=None if missing is None else AbsentPlace(missing.role, missing.created_at),
    )
    line: dict[str, Any] = {**_line("turn", shown, sparse=True)}
    if reply is not None and turn.result is not None and turn.update is not None:
        line |= {"result": dict(turn.result), "update": to_plain(_exported(turn.update), sparse=True)}
    return [*lines, line]


def thread_lines(record: ThreadRecord | None, thread: tuple[str, str], attached: Sequence[Attached]) -> Iterator[Line]:
    """Yield the thread's record with its attached documents, then its summary if it has one."""
    user_id, thread_id = thread
    documents = tuple(
        AttachedDocument(one.document.id, one.attached_at, shared=one.document.user_id == GLOBAL_USER)
        for one in attached
    )
    kept = record or ThreadRecord(user_id, thread_id)
    shown = ExportedThread(
        user_id=user_id,
        thread_id=thread_id,
        title=kept.title,
        summarised_to=kept.summarised_to,
        summarised_at=kept.summarised_at,
        archived_to=kept.archived_to,
        archived_at=kept.archived_at,
        closing=kept.closing,
        revision=kept.revision,
        documents=documents,
    )
    yield _line("thread", shown, sparse=True)
    if kept.summary is not None:
        by = kept.summary_by or "extract"
        yield _line("summary", ExportedSummary(user_id, thread_id, kept.summary, by))


def exported_fact(fact: Fact) -> Line:
    """Return the line of a fact in any state; a forgotten one without text, even where the store still has it."""
    if fact.status == "forgotten":
        fact = replace(tombstone(fact, at=fact.updated_at), revision=fact.revision)
    shown = _line("fact", fact)
    return {name: value for name, value in shown.items() if name != "indexed"}


def record_line(record: ClientRecord) -> Line:
    """Return the line of an open round of a client's tools, or of a conversation that was made by hand."""
    return _line("client_record", record, sparse=True)


def of_types(lines: Iterable[Line], types: frozenset[str] | None) -> list[Line]:
    """Return the lines of these `types`, or all (None)."""
    return [line for line in lines if types is None or line["type"] in types]


def _exported(update: Update) -> Update:
    """Return the update without its preview, and without the tries of steps that have ended.

    The tries mean nothing, and differ between stores; a preview is applied where it was shown, or not at all.
    """
    ended = {"done", "skipped"}
    steps = {name: Step(one.status, one.reason) if one.status in ended else one for name, one in update.steps.items()}
    return replace(update, steps=steps, preview=None)


def _message(message: Message) -> ExportedMessage:
    return ExportedMessage(
        user_id=message.user_id,
        thread_id=message.thread_id,
        turn_id=message.turn_id,
        role=message.role,
        content=message.content,
        timestamp=message.created_at,
        name=message.name,
        message_id=message.imported_id,
        metadata=dict(message.metadata) or None,
        agent_id=message.agent_id,
        further=message.further,
    )


def _line(kind: str, value: object, *, sparse: bool = False) -> Line:
    return {"type": kind, **to_plain(value, sparse=sparse)}
