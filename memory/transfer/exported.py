"""Defines the values of an export's lines.

A turn's lines stand together: its messages, which name their `turn_id`, then the turn. A summary that names its author
(`by`) stands behind its thread. A document's text comes in parts, one on each line.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.threads.recorded_hits import bounded_result
from recollect.memory.transfer.import_line import BadLine
from recollect.memory.values.document import DocumentKind
from recollect.memory.values.fact import Fact
from recollect.memory.values.frozen import frozen
from recollect.memory.values.further_message import FurtherMessage
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import SummaryBy, ThreadRecord
from recollect.memory.values.turn import Message, Role, Turn
from recollect.memory.values.update import Update


@frozen
class AbsentPlace:
    """Marks the place of a turn for which an import had no message."""

    role: Role
    timestamp: datetime


@frozen
class ExportedMessage:
    """Holds a message of an exported turn. `message_id` is the one that an importer gave it."""

    user_id: str
    thread_id: str
    turn_id: str
    role: Role
    content: str
    timestamp: datetime
    name: str | None = None
    message_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    further: tuple[FurtherMessage, ...] = ()
    agent_id: str | None = None

    @property
    def message(self) -> Message:
        """Return the message as a store keeps it."""
        return Message(
            self.user_id,
            self.thread_id,
            self.turn_id,
            self.role,
            self.content,
            self.timestamp,
            self.name,
            self.metadata or {},
            imported_id=self.message_id,
            further=self.further,
            agent_id=self.agent_id,
        )


@frozen
class ExportedTurn:
    """Holds a turn without its messages; `result` and `update` are None while it is unfinished."""

    user_id: str
    thread_id: str
    turn_id: str
    position: int
    result: Mapping[str, Any] | None = None
    update: Update | None = None
    absent: AbsentPlace | None = None

    def whole(self, messages: Mapping[Role, Message]) -> Turn:
        """Return the turn with these messages.

        Raises:
            BadLine: a message is missing, or is one too many.
        """
        if any(message.thread_id != self.thread_id for message in messages.values()):
            raise BadLine("The messages of the turn are of another thread.")
        places = dict(messages)
        if self.absent is not None:
            if self.absent.role in places or self.result is None:
                raise BadLine("absent names a message that is there.")
            missing = Message(
                self.user_id, self.thread_id, self.turn_id, self.absent.role, "", self.absent.timestamp, absent=True
            )
            places[self.absent.role] = missing
        if "user" not in places or ("assistant" in places) != (self.result is not None):
            raise BadLine("The turn's messages must stand in the lines before it.")
        message = replace(places["user"], position=self.position)
        if self.result is None:
            return Turn(message)
        answer = replace(places["assistant"], position=self.position + 1)
        return Turn(message, answer, bounded_result(self.result), self.update)


@frozen
class AttachedDocument:
    """Names a document that a thread has attached; `shared`: it belongs to everybody."""

    id: str
    attached_at: datetime
    shared: bool = False


@frozen
class ExportedThread:
    """Holds a thread's record without its summary, and its attached documents. `revision` 0: it has no record."""

    user_id: str
    thread_id: str
    title: str | None = None
    summarised_to: int = 0
    summarised_at: datetime | None = None
    archived_to: int = 0
    archived_at: datetime | None = None
    closing: bool = False
    revision: int = 0
    documents: tuple[AttachedDocument, ...] = ()

    @property
    def scope(self) -> Scope:
        """Return the user and thread."""
        return Scope(self.user_id, self.thread_id)

    @property
    def record(self) -> ThreadRecord | None:
        """Return the record as a store keeps it, not indexed yet; None without one."""
        if self.revision == 0:
            return None
        return ThreadRecord(
            user_id=self.user_id,
            thread_id=self.thread_id,
            title=self.title,
            summarised_to=self.summarised_to,
            summarised_at=self.summarised_at,
            archived_to=self.archived_to,
            archived_at=self.archived_at,
            closing=self.closing,
            revision=self.revision,
            indexed=False,
        )


@frozen
class ExportedSummary:
    """Holds a thread's summary and its author."""

    user_id: str
    thread_id: str
    content: str
    by: SummaryBy


@frozen
class ExportedPassage:
    """Holds a piece of a document's text; `page` counts from 1."""

    text: str
    page: int | None = None


@frozen
class ExportedDocument:
    """Holds a part (from 1) of a document, and whether it is the last; all parts have the same header.

    Joined, the passages of all parts are the document's text.
    """

    user_id: str
    id: str
    title: str
    kind: DocumentKind
    content_hash: str
    created_at: datetime
    part: int
    is_last: bool
    passages: tuple[ExportedPassage, ...]
    domain: str | None = None
    source: str | None = None
    metadata: Mapping[str, Any] | None = None
    error: str | None = None
    characters: int = 0
    pages: int | None = None
    agent_id: str | None = None


Exported = ExportedMessage | ExportedTurn | ExportedThread | ExportedSummary | ExportedDocument | Fact | ClientRecord
