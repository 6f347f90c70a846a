"""Client records and sessions, written behind fences: an erasure finds them all, or they are taken back."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from recollect.memory.erasure.fences import Fence, Fences
from recollect.memory.ports.client_records import ClientRecord, ClientRecords
from recollect.memory.ports.sessions import Session, Sessions
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope, is_id


@frozen
class FencedClientRecords:
    """Reads, writes and removes client records of single users."""

    records: ClientRecords
    fences: Fences

    async def put(self, record: ClientRecord, fence: Fence) -> None:
        """Store the record behind the writer's `fence`, in place of the user's one with its id.

        Raises:
            UserErased: the user, or the thread, was erased since the fence was observed.
        """
        async with fence.writing() as writing:
            writing.on_erased(lambda: self.remove(user_id=record.user_id, record_id=record.id))
            await self.records.put(record)

    async def insert(self, record: ClientRecord) -> bool:
        """Store a new record; return False, and change nothing, if the user has one with its id.

        Raises:
            UserErased: the user, or the thread, is being erased.
        """
        async with self.fences.writing(record.user_id, record.thread_id) as writing:
            writing.on_erased(lambda: self.remove(user_id=record.user_id, record_id=record.id))
            return await self.records.insert(record)

    async def record(self, *, user_id: str, record_id: str) -> ClientRecord | None:
        """Return the record, or None. Whether its time is up, the caller asks."""
        return await self.records.record(user_id=user_id, record_id=record_id)

    def every(self, scope: Scope) -> AsyncIterator[Sequence[ClientRecord]]:
        """Yield all records of the user (or the thread), in batches of at most 100, by id, ascending."""
        return self.records.every(scope)

    async def remove(self, *, user_id: str, record_id: str) -> bool:
        """Delete the record; return False if there is none."""
        return await self.records.remove(user_id=user_id, record_id=record_id)


@frozen
class FencedSessions:
    """Reads, writes and removes sessions; a session of one user is written behind that user's fence."""

    sessions: Sessions
    fences: Fences

    async def insert(self, session: Session) -> None:
        """Store a new session.

        Raises:
            UserErased: the session's user is being erased.
        """
        async with self._storing(session):
            await self.sessions.insert(session)

    async def session(self, digest: str) -> Session | None:
        """Return the session with this digest, or None. Whether its time is up, the caller asks."""
        return await self.sessions.session(digest)

    async def extend(self, digest: str, *, expires_at: datetime) -> bool:
        """Set `expires_at` if it is later than the stored one; return False, and change nothing, otherwise."""
        return await self.sessions.extend(digest, expires_at=expires_at)

    async def remove(self, digest: str) -> bool:
        """Delete the session; return False if there is none."""
        return await self.sessions.remove(digest)

    async def trim(self, name: str, *, keep: int) -> int:
        """Delete the sessions of the caller of this name but the `keep` that started last; return how many."""
        return await self.sessions.trim(name, keep=keep)

    @asynccontextmanager
    async def _storing(self, session: Session) -> AsyncGenerator[None]:
        """Keep a session out of an erasure of its user, which would not find what is stored after its scan."""
        if not is_id(session.user_id):  # of nobody's own: any user's, or a tenant's
            yield
            return
        async with self.fences.writing(session.user_id or "") as writing:
            writing.on_erased(lambda: self.sessions.remove(session.digest))
            yield
