"""The tables of the SQLite file, and the check that the file and the code fit together.

Times are epoch milliseconds in UTC. `messages.seq` grows with each insert, so that the replies' seq is the order of
their commits. Every index answers one question from its prefix, so that no question grows with other users' data.
"""

import sqlite3
from pathlib import Path

from memory.errors import ConfigurationError

VERSION = 1
OLDEST_SQLITE = (3, 37, 0)
"""The first with STRICT tables (2021); RETURNING came in 3.35."""

_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    role TEXT NOT NULL,
    position INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    name TEXT,
    content TEXT NOT NULL,
    metadata TEXT NOT NULL,
    result TEXT,
    status TEXT,
    indexed INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    update_json TEXT
) STRICT;
CREATE UNIQUE INDEX messages_by_turn ON messages (user_id, turn_id, role);
CREATE UNIQUE INDEX messages_by_position ON messages (user_id, thread_id, position);
CREATE INDEX messages_by_time ON messages (user_id, thread_id, created_at);
CREATE INDEX messages_pending ON messages (user_id, status) WHERE status = 'pending';
CREATE INDEX messages_indexed ON messages (user_id) WHERE indexed = 1;

CREATE TABLE facts (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    home TEXT NOT NULL,
    key TEXT,
    value TEXT NOT NULL,
    statement TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    confirmed_at INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    scope TEXT NOT NULL,
    thread_id TEXT,
    turn_id TEXT,
    source TEXT NOT NULL,
    tags TEXT NOT NULL,
    importance REAL NOT NULL,
    pinned INTEGER NOT NULL,
    evidence TEXT,
    replaces TEXT
) STRICT;
CREATE UNIQUE INDEX facts_by_id ON facts (user_id, id);
CREATE INDEX facts_living ON facts (user_id, home, created_at, id) WHERE valid_to IS NULL;
CREATE INDEX facts_by_home ON facts (user_id, home);

CREATE TABLE state (openings INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES (0);
PRAGMA user_version = 1;
COMMIT;
"""


def prepare(connection: sqlite3.Connection, path: Path) -> int:
    """Bring the file's tables up to this version and count the opening; return how many there were.

    Raises:
        ConfigurationError: the file is newer than this code, or not ours.
    """
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        raise ConfigurationError(
            f"{path} in DATA_DIR was written by a newer version (schema {found}, this one knows {VERSION}); "
            "upgrade Recollect or choose another DATA_DIR."
        )
    if found == 0:
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise ConfigurationError(f"{path} is another program's database; choose another DATA_DIR.")
        connection.executescript(_TABLES)
    row = connection.execute("UPDATE state SET openings = openings + 1 RETURNING openings").fetchall()
    return row[0][0]
