"""Files that version 2 wrote: every turn had two messages, and nothing was imported."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.stores.sqlite.schema import SCRIPTS, VERSION
from recollect.memory.stores.update_json import update_to_json
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import to_ms
from recollect.memory.values.turn import Exchange, Message
from tests.contracts.store.conftest import Backend
from tests.contracts.store.conversations import ids_of_indexed
from tests.contracts.store.past_turns import SETTLED, past, stored, without_message
from tests.contracts.store.samples import NOW, SECOND, asked
from tests.contracts.store.test_sqlite_upgrade import schema

ADA = Scope("ada")
T1 = Scope("ada", "t1")
MESSAGE = """
INSERT INTO messages
(user_id, thread_id, turn_id, role, position, created_at, name, content, metadata, result, status, indexed, generation,
 update_json)
VALUES ('ada', 't1', ?, ?, ?, ?, ?, ?, '{}', ?, ?, ?, 3, ?)
"""


def older(position: int, content: str, *, name: str | None = None) -> Message:
    role = "user" if position % 2 else "assistant"
    return Message(
        *("ada", "t1", f"turn{(position + 1) // 2}", role, content, NOW + position * SECOND),
        name=name,
        position=position,
    )


MESSAGES = [
    older(1, "Hello.", name="Ada"),
    older(2, "Hi!"),
    older(3, "And now?"),
    older(4, "Now this."),
    older(5, "So"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with two finished turns, of which the index holds the first, and an unfinished one."""
    path = tmp_path / "documents.db"
    with closing(sqlite3.connect(path)) as connection:
        for script in SCRIPTS[:2]:
            connection.executescript(script)
        for message in MESSAGES:
            reply = ("{}", "skipped", int(message.position == 2), update_to_json(SETTLED))
            connection.execute(
                MESSAGE,
                (
                    *(message.turn_id, message.role, message.position, to_ms(message.created_at)),
                    *(message.name, message.content),
                    *(reply if message.role == "assistant" else (None, None, 0, None)),
                ),
            )
        connection.commit()
    return path


@pytest.fixture
def backend(path: Path) -> Backend:
    return lambda: open_sqlite_store(path)


async def test_turns_of_version_2_have_all_their_messages(store: Store):
    conversations = store.conversations
    assert await conversations.messages(T1, limit=9) == MESSAGES
    assert await conversations.recent(T1, limit=9) == [Exchange(*MESSAGES[:2]), Exchange(*MESSAGES[2:4])]
    assert await conversations.count_messages("ada") == 5
    assert await conversations.count_indexed_messages() == 2
    assert await ids_of_indexed(store) == sorted(message.id for message in MESSAGES[:2])
    (overview,) = await conversations.overviews("ada", limit=9)
    assert (overview.turns, overview.messages) == (2, 5)
    assert (await stored(store, "turn1")).update == SETTLED


async def test_messages_of_version_2_are_found_by_time_and_place(store: Store):
    found = MESSAGES[:2]
    always = Period(NOW, NOW + timedelta(days=1))
    assert await store.timeline.names("ada", limit=9) == ["Ada"]
    assert await store.timeline.during(ADA, always, limit=9) == found
    assert await store.timeline.latest(T1, limit=9) == found[::-1]
    assert await store.timeline.around(T1, 3, before=9, after=9) == found
    assert await store.timeline.preceding(MESSAGES[:3], count=9) == {
        MESSAGES[1].id: ["Hello."],
        MESSAGES[2].id: ["Hi!", "Hello."],
    }
    assert await store.imports.known("ada", ["turn1"]) == {}


async def test_turns_are_imported_behind_those_of_version_2(store: Store):
    assert await store.imports.insert([past(11), without_message(past(12))]) == 2
    assert [(await stored(store, f"turn{number}")).message.position for number in (11, 12)] == [7, 9]
    assert await store.conversations.count_messages("ada") == 8
    assert await store.conversations.count_indexed_messages() == 5
    assert (await store.conversations.accept(asked("live"))).position == 11


async def test_an_upgraded_file_is_like_a_new_one(backend: Backend, path: Path, tmp_path: Path):
    for _ in range(2):
        async with backend() as store:
            await store.ping()
    async with open_sqlite_store(tmp_path / "new.db") as store:
        await store.ping()
    assert schema(path) == schema(tmp_path / "new.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
