"""The record of a thread beside its messages: its title, its rolling summary, and up to where it was archived."""

from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import iso
from recollect.memory.values.turn import derived_id
from recollect.memory.values.version import version_of

SummaryBy = Literal["model", "extract", "person"]


@frozen
class ThreadRecord:
    """One thread's record; it is stored once any field has a value to keep.

    `summary` stands for the messages up to position `summarised_to` (0: none). The thread is archived while no message
    has a position above `archived_to` (0: never archived): a new message reopens it. `closing` says that its archive
    still lacks its summary. `revision` rises with every write; `indexed` says that the index holds what this revision
    calls for.
    """

    user_id: str
    thread_id: str
    title: str | None = None
    summary: str | None = None
    summary_by: SummaryBy | None = None
    summarised_to: int = 0
    summarised_at: datetime | None = None
    archived_to: int = 0
    archived_at: datetime | None = None
    closing: bool = False
    revision: int = 0
    indexed: bool = True

    @property
    def scope(self) -> Scope:
        """The user and thread."""
        return Scope(self.user_id, self.thread_id)

    @property
    def point_id(self) -> str:
        """The id of its summary's point."""
        return derived_id(self.user_id, self.thread_id, "summary")

    @property
    def summary_status(self) -> Literal["pending", "done"] | None:
        """The state of the summary: "pending" while that of the archive is to be written, "done" once there is one.

        None for a thread that has no summary and was never archived.
        """
        if self.closing:
            return "pending"
        return "done" if self.summary is not None or self.archived_to else None

    @property
    def summary_version(self) -> str:
        """The version of the summary that an edit is made from."""
        return version_of(self.summary, self.summary_by)

    @property
    def has_point(self) -> bool:
        """Tell whether its summary has a point in the index: once the thread was archived."""
        return self.archived_to > 0 and bool(self.summary)

    def without(self, position: int) -> "ThreadRecord":
        """Return the record for a thread whose messages from `position` on are neither summarised nor archived.

        A summary that covers such messages is dropped; one that a person wrote stays.
        """
        before = position - 1
        kept = replace(
            self,
            archived_to=min(self.archived_to, before),
            closing=self.closing and self.archived_to <= before,
            summarised_to=min(self.summarised_to, before),
        )
        if self.summarised_to <= before or self.summary_by == "person":
            return kept
        return replace(kept, summary=None, summary_by=None, summarised_to=0, summarised_at=None)

    def progress(self) -> dict[str, int]:
        """Return how far summary and archive reach, as plain JSON: fields of this class."""
        return {"summarised_to": self.summarised_to, "archived_to": self.archived_to}

    def revised(self, **changes: Any) -> "ThreadRecord":
        """Return the next revision with `changes`, which the index does not hold yet."""
        return replace(self, **{"revision": self.revision + 1, "indexed": False, **changes})


@frozen
class ThreadOverview:
    """One thread in a list: figures of its messages, and its record where it has one. `turns` counts finished ones."""

    thread_id: str
    last_activity_at: datetime
    last_position: int
    turns: int
    messages: int
    record: ThreadRecord | None = None

    @property
    def is_archived(self) -> bool:
        """Tell whether it was archived and has no message since."""
        return self.record is not None and self.record.archived_to >= self.last_position

    def as_json(self) -> dict[str, Any]:
        """Return the thread as the HTTP contract shows it in a list."""
        return {
            "thread_id": self.thread_id,
            "title": self.record.title if self.record else None,
            "last_activity_at": iso(self.last_activity_at),
            "turns": self.turns,
            "messages": self.messages,
            "archived": self.is_archived,
        }

    def as_whole_json(self) -> dict[str, Any]:
        """Return the thread with its summary, as the HTTP contract shows a single one."""
        record = self.record
        return {
            **self.as_json(),
            "summary": record.summary if record else None,
            "summary_by": record.summary_by if record else None,
            "summary_status": record.summary_status if record else None,
            "archived_at": iso(record.archived_at) if record and record.archived_at else None,
        }
