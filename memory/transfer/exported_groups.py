"""Groups the lines of an export: a turn with its messages, a thread with its summary, a document with its parts.

Lines of one group stand together, so that at most one open group of each kind is kept in memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.memory.transfer.exported import (
    ExportedDocument,
    ExportedMessage,
    ExportedSummary,
    ExportedThread,
    ExportedTurn,
)
from recollect.memory.transfer.import_batch import FailedLine
from recollect.memory.transfer.import_line import BadLine
from recollect.memory.transfer.restoring_turns import NumberedTurn
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, Role

ALONE = "The turn of this message must stand behind it; leave turn_id out to import a message alone."
MOST_PARTS = 1_000


class MessagePlace(NamedTuple):
    """Names the user and the turn that a message belongs to."""

    user_id: str
    id: str


class NumberedThread(NamedTuple):
    """Holds a thread, or a summary alone, and the numbers of its lines."""

    scope: Scope
    thread: ExportedThread | None
    summary: ExportedSummary | None
    numbers: tuple[int, ...]


class NumberedDocument(NamedTuple):
    """Holds the parts of a document and the numbers of its lines."""

    parts: tuple[ExportedDocument, ...]
    numbers: tuple[int, ...]


@dataclass
class Groups:
    """Takes lines in their order; `turns`, `threads` and `documents` are complete, `failed` lines cannot become so."""

    turns: list[NumberedTurn] = field(default_factory=list[NumberedTurn])
    threads: list[NumberedThread] = field(default_factory=list[NumberedThread])
    documents: list[NumberedDocument] = field(default_factory=list[NumberedDocument])
    failed: list[FailedLine] = field(default_factory=list[FailedLine])
    _of: MessagePlace | None = field(init=False, default=None)
    _messages: dict[Role, tuple[int, Message]] = field(init=False, default_factory=dict[Role, tuple[int, Message]])
    _thread: tuple[int, ExportedThread] | None = field(init=False, default=None)
    _parts: list[tuple[int, ExportedDocument]] = field(init=False, default_factory=list[tuple[int, ExportedDocument]])

    def message(self, number: int, said: ExportedMessage) -> None:
        """Take a message; its turn comes behind it."""
        place = MessagePlace(said.user_id, said.turn_id)
        if place != self._of or said.role in self._messages:
            self._fail_messages()
            self._of = place
        self._messages[said.role] = (number, said.message)

    def turn(self, number: int, said: ExportedTurn) -> None:
        """Take a turn, whose messages came before it.

        Raises:
            BadLine: messages are missing, or are of another thread.
        """
        if MessagePlace(said.user_id, said.turn_id) != self._of:
            self._fail_messages()
        messages, self._messages, self._of = self._messages, {}, None
        try:
            turn = said.whole({role: message for role, (_, message) in messages.items()})
        except BadLine:
            self._fail(number for number, _ in messages.values())
            raise
        self.turns.append(NumberedTurn(turn, (*(number for number, _ in messages.values()), number)))

    def thread(self, number: int, said: ExportedThread) -> None:
        """Take a thread; its summary comes behind it, if it has one."""
        self._end_thread()
        self._thread = (number, said)

    def summary(self, number: int, said: ExportedSummary) -> None:
        """Take the summary of the thread on the line before, or of a stored thread."""
        of = self._thread
        if of is not None and (of[1].user_id, of[1].thread_id) == (said.user_id, said.thread_id):
            self._thread = None
            self.threads.append(NumberedThread(of[1].scope, of[1], said, (of[0], number)))
        else:
            self.threads.append(NumberedThread(Scope(said.user_id, said.thread_id), None, said, (number,)))

    def document(self, number: int, said: ExportedDocument) -> None:
        """Take a part of a document; all parts come in a row.

        Raises:
            BadLine: it is not the next part.
        """
        if self._parts and (said.user_id, said.id) != (self._parts[0][1].user_id, self._parts[0][1].id):
            self._fail_parts()
        if said.part != len(self._parts) + 1 or said.part > MOST_PARTS:
            self._fail_parts()
            raise BadLine("The parts of a document must come in a row, from the first on.")
        self._parts.append((number, said))
        if said.is_last:
            numbers, parts = zip(*self._parts, strict=True)
            self.documents.append(NumberedDocument(tuple(parts), tuple(numbers)))
            self._parts = []

    def end_threads(self) -> None:
        """Complete the thread that waits for its summary without one, before its turns are stored."""
        self._end_thread()

    def end(self) -> None:
        """Complete the waiting thread, and fail incomplete turns and documents: no line follows."""
        self._fail_messages()
        self._end_thread()
        self._fail_parts()

    def _end_thread(self) -> None:
        if self._thread is not None:
            number, thread = self._thread
            self._thread = None
            self.threads.append(NumberedThread(thread.scope, thread, None, (number,)))

    def _fail_messages(self) -> None:
        self._fail(number for number, _ in self._messages.values())
        self._messages, self._of = {}, None

    def _fail_parts(self) -> None:
        for number, _ in self._parts:
            self.failed.append(FailedLine(number, "The rest of this document is missing."))
        self._parts = []

    def _fail(self, numbers: Iterable[int]) -> None:
        self.failed += [FailedLine(number, ALONE) for number in numbers]
