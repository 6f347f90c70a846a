"""Client records: what clients come back for beside the turns: open rounds of tools, conversations, imports."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any, Literal, Protocol

from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

MOST_RECORD_CHARACTERS = 8_000_000
"""The most characters of a record's content as JSON: a document of MongoDB holds 16 MB."""
RecordKind = Literal["open_round", "conversation", "import"]


@frozen
class ClientRecord:
    """One record of a thread. `content` is plain JSON; `expires_at` (UTC) is None where the record stays.

    An open round waits for the results of a client's tools; a conversation is a thread that a client made by hand; an
    import, of nobody's, says what became of it.
    """

    user_id: str
    thread_id: str
    id: str
    kind: RecordKind
    created_at: datetime
    expires_at: datetime | None = None
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def scope(self) -> Scope:
        """The user and thread that it belongs to."""
        return Scope(self.user_id, self.thread_id)

    @property
    def agent_id(self) -> str | None:
        """The label of the agent whose key made it."""
        return self.content.get("agent_id")

    def is_over(self, now: datetime) -> bool:
        """Tell whether its time is up."""
        return self.expires_at is not None and self.expires_at <= now


class ClientRecords(Protocol):
    """Client records: one per user and id, written whole."""

    @abstractmethod
    async def put(self, record: ClientRecord) -> None:
        """Store the record, in place of the user's one with its id."""
        ...

    @abstractmethod
    async def insert(self, record: ClientRecord) -> bool:
        """Store a new record; return False, and change nothing, if the user has one with its id."""
        ...

    @abstractmethod
    async def record(self, *, user_id: str, record_id: str) -> ClientRecord | None:
        """Return the record, or None. Whether its time is up, the caller asks."""
        ...

    @abstractmethod
    def every(self, scope: Scope) -> AsyncIterator[Sequence[ClientRecord]]:
        """Yield all records of the user (or the thread), in batches of at most 100, by id, ascending."""
        ...

    @abstractmethod
    async def remove(self, *, user_id: str, record_id: str) -> bool:
        """Delete the record; return False if there is none."""
        ...

    @abstractmethod
    async def expire(self, now: datetime, *, limit: int) -> int:
        """Delete up to `limit` records of any user whose `expires_at` is `now` or before; return how many."""
        ...

    @abstractmethod
    async def delete(self, scope: Scope) -> int:
        """Delete all records of the thread (or of the user); return how many there were."""
        ...
