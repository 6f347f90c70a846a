"""Files that version 2 wrote: every turn had two messages, and nothing was imported."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from memory.dates import Period
from memory.documents import Documents
from memory.scope import Scope
from memory.stores.sqlite import open_sqlite_documents
from memory.stores.sqlite.schema import SCRIPTS, VERSION
from memory.stores.update_json import update_to_json
from memory.times import to_ms
from memory.turn import Exchange, Message
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.conversations import ids_of_indexed
from tests.contracts.documents.past_turns import SETTLED, past, stored, without_message
from tests.contracts.documents.samples import NOW, SECOND, asked
from tests.contracts.documents.test_sqlite_upgrade import schema

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
    """A file with two finished turns, of which the index holds the first, and an unfinished one."""
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
    return lambda: open_sqlite_documents(path)


async def test_turns_of_version_2_have_all_their_messages(documents: Documents):
    conversations = documents.conversations
    assert await conversations.messages(T1, limit=9) == MESSAGES
    assert await conversations.recent(T1, limit=9) == [Exchange(*MESSAGES[:2]), Exchange(*MESSAGES[2:4])]
    assert await conversations.count_messages("ada") == 5
    assert await conversations.count_indexed_messages() == 2
    assert await ids_of_indexed(documents) == sorted(message.id for message in MESSAGES[:2])
    (overview,) = await conversations.overviews("ada", limit=9)
    assert (overview.turns, overview.messages) == (2, 5)
    assert (await stored(documents, "turn1")).update == SETTLED


async def test_messages_of_version_2_are_found_by_time_and_place(documents: Documents):
    found = MESSAGES[:2]
    always = Period(NOW, NOW + timedelta(days=1))
    assert await documents.timeline.names("ada", limit=9) == ["Ada"]
    assert await documents.timeline.during(ADA, always, limit=9) == found
    assert await documents.timeline.latest(T1, limit=9) == found[::-1]
    assert await documents.timeline.around(T1, 3, before=9, after=9) == found
    assert await documents.timeline.preceding(MESSAGES[:3], count=9) == {
        MESSAGES[1].id: ["Hello."],
        MESSAGES[2].id: ["Hi!", "Hello."],
    }
    assert await documents.imports.known("ada", ["turn1"]) == {}


async def test_turns_are_imported_behind_those_of_version_2(documents: Documents):
    assert await documents.imports.insert([past(11), without_message(past(12))]) == 2
    assert [(await stored(documents, f"turn{number}")).message.position for number in (11, 12)] == [7, 9]
    assert await documents.conversations.count_messages("ada") == 8
    assert await documents.conversations.count_indexed_messages() == 5
    assert (await documents.conversations.accept(asked("live"))).position == 11


async def test_an_upgraded_file_is_like_a_new_one(backend: Backend, path: Path, tmp_path: Path):
    for _ in range(2):
        async with backend() as documents:
            await documents.ping()
    async with open_sqlite_documents(tmp_path / "new.db") as documents:
        await documents.ping()
    assert schema(path) == schema(tmp_path / "new.db")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
