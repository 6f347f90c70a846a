"""Client records and sessions: their writers come too late for an erasure, and leave nothing behind it."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect.memory.erasure.fenced_records import FencedClientRecords, FencedSessions
from recollect.memory.erasure.fences import Fences
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.ports.sessions import Session
from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.errors import UserErased
from recollect.memory.values.scope import Scope

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ADA = Scope("ada")
RECORD = ClientRecord("ada", "t1", "conversation/t1", "conversation", NOW)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_sqlite_store(tmp_path / "documents.db") as opened:
        yield opened


@pytest.fixture
def fences(store: Store) -> Fences:
    return Fences(store.erasures)


def session(user_id: str | None) -> Session:
    return Session("digest", "ada", user_id, user_id is None, None, NOW, LATER, LATER)


async def test_a_record_of_a_writer_from_before_an_erasure_is_not_stored(store: Store, fences: Fences) -> None:
    records = FencedClientRecords(store.client_records, fences)
    fence = await fences.observe(RECORD.scope)
    await fences.fence_out(ADA, "e1", at=NOW)
    with pytest.raises(UserErased):
        await records.put(RECORD, fence)
    with pytest.raises(UserErased):
        await records.insert(RECORD)
    assert await records.record(user_id="ada", record_id=RECORD.id) is None


async def test_a_users_session_waits_for_the_end_of_their_erasure(store: Store, fences: Fences) -> None:
    sessions = FencedSessions(store.sessions, fences)
    await fences.fence_out(ADA, "e1", at=NOW)
    with pytest.raises(UserErased):
        await sessions.insert(session("ada"))
    assert await sessions.session("digest") is None


async def test_an_administrators_session_waits_for_no_erasure(store: Store, fences: Fences) -> None:
    sessions = FencedSessions(store.sessions, fences)
    await fences.fence_out(ADA, "e1", at=NOW)
    await sessions.insert(session(None))
    assert await sessions.session("digest") == session(None)
