"""Whatever a backend keeps, an erasure knows: a new table or collection that nobody names fails here."""

import sqlite3
from pathlib import Path

from pymongo import MongoClient

from recollect.memory.stores.mongo import connection, erasures, open_mongo_store
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.stores.sqlite.erasures import HOLDERS, NOBODYS
from recollect.memory.values.scope import Scope
from tests.contracts.store.conftest import MongoDatabase
from tests.contracts.store.samples import LEASE, NOW, finish

KEPT = {"conversations", "facts", "threads", "documents", "keys", "sessions", "client_records"}
"""The data holders of documents that `data_holders` has; "work" is MongoDB's alone."""


async def test_every_table_has_a_holder(tmp_path: Path) -> None:
    async with open_sqlite_store(tmp_path / "documents.db"):
        pass
    with sqlite3.connect(tmp_path / "documents.db") as file:
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        columns = {
            table: {column[1] for column in file.execute(f"PRAGMA table_info({table})")} for table in sorted(tables)
        }
    assert tables == HOLDERS.keys() | NOBODYS
    assert not HOLDERS.keys() & NOBODYS
    for table, (holder, thread) in HOLDERS.items():
        assert holder in KEPT
        assert {"user_id", thread or "user_id"} <= columns[table], table
        assert thread is not None or "thread_id" not in columns[table], table
    for table in NOBODYS - {"erasures"}:
        assert not columns[table] & {"user_id", "thread_id", "home", "owner"}, table


async def test_every_collection_has_a_holder(mongo_database: MongoDatabase) -> None:
    named = {value for name, value in vars(connection).items() if name.isupper() and isinstance(value, str)}
    assert named == erasures.HOLDERS.keys() | erasures.WORK | erasures.NOBODYS
    assert {holder for holder, _ in erasures.HOLDERS.values()} == KEPT
    async with open_mongo_store(mongo_database.url, mongo_database.name) as store:
        await finish(store, "one")
        await store.updates.claim("ada", owner="me", lease=LEASE, now=NOW)
        async with store.queue.turn(Scope("ada", "t1"), wait_seconds=1):
            pass
        await store.erasures.block("user", "one", at=NOW)
    with MongoClient[dict[str, object]](mongo_database.url) as client:
        stored = set(client[mongo_database.name].list_collection_names())
    assert stored - {"system.indexes"} <= named
