"""Defines the tables of the SQLite file, migrates older files, and refuses what is too old or newer than the code.

Times are epoch milliseconds in UTC. `messages.seq` grows with each insert, so that the replies' seq is the order of
their commits. Every index answers one query from its prefix, so that no query grows with other users' data.
A partial index repeats the columns of its condition where rows are counted: SQLite then reads the index alone.

A file runs the scripts that it has not run yet, a new one all of them, each in one transaction.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from recollect.memory.language.said_hash import said_hash
from recollect.memory.values.errors import ConfigurationError

OLDEST_SQLITE = (3, 37, 0)
"""The first with STRICT tables (2021); RETURNING came in 3.35."""

FIRST_VERSION = 8
"""The oldest version that is opened: those below it were never released."""
_EIGHTH = """
BEGIN IMMEDIATE;
-- `said` counts the messages of a reply's turn; an imported turn may lack one.
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
    update_json TEXT,
    imported_id TEXT,
    absent INTEGER NOT NULL DEFAULT 0,
    said INTEGER NOT NULL DEFAULT 2
) STRICT;
CREATE UNIQUE INDEX messages_by_turn ON messages (user_id, turn_id, role);
CREATE UNIQUE INDEX messages_by_position ON messages (user_id, thread_id, position);
CREATE INDEX messages_pending ON messages (user_id, status) WHERE status = 'pending';
CREATE INDEX messages_indexed ON messages (user_id, indexed) WHERE indexed = 1;
CREATE INDEX messages_failed ON messages (user_id, status) WHERE status = 'failed';
CREATE INDEX messages_by_age ON messages (created_at, seq) WHERE role = 'user';
CREATE INDEX messages_of_user_by_age ON messages (user_id, created_at, seq) WHERE role = 'user';
CREATE INDEX messages_by_time ON messages (user_id, thread_id, created_at, position);
CREATE INDEX messages_of_user_by_time ON messages (user_id, created_at, thread_id, position);
CREATE INDEX messages_searchable ON messages (user_id, thread_id, position, indexed, said, absent) WHERE indexed = 1;
CREATE INDEX messages_imported ON messages (user_id, imported_id) WHERE imported_id IS NOT NULL;
CREATE INDEX messages_named ON messages (user_id, name) WHERE name IS NOT NULL;
CREATE INDEX messages_absent ON messages (user_id, thread_id, absent) WHERE absent = 1;
CREATE INDEX messages_pending_by_time ON messages (user_id, status, created_at) WHERE status = 'pending';

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
    replaces TEXT,
    status TEXT NOT NULL DEFAULT 'active',
    proposes TEXT,
    ended TEXT,
    revision INTEGER NOT NULL DEFAULT 1,
    indexed INTEGER NOT NULL DEFAULT 0,
    history TEXT NOT NULL DEFAULT '[]'
) STRICT;
CREATE UNIQUE INDEX facts_by_id ON facts (user_id, id);
CREATE INDEX facts_by_replaced ON facts (user_id, replaces, created_at, id) WHERE replaces IS NOT NULL;
CREATE INDEX facts_by_home ON facts (user_id, home, created_at, id);
CREATE INDEX facts_open ON facts (user_id, home, created_at, id, valid_to, status, ended)
    WHERE status = 'active' AND ended IS NULL;
CREATE INDEX facts_superseded ON facts (user_id, home, ifnull(valid_to, 9223372036854775807))
    WHERE status = 'active' AND ended IS NOT NULL;
CREATE INDEX facts_proposed ON facts (user_id, home, created_at, id) WHERE status = 'proposed';
CREATE INDEX facts_owed ON facts (user_id, indexed) WHERE indexed = 0;
CREATE INDEX facts_indexed ON facts (user_id, indexed, status, ended)
    WHERE indexed = 1 AND status = 'active' AND ended IS NULL;
CREATE INDEX facts_by_age ON facts (confirmed_at) WHERE pinned = 0 AND status <> 'forgotten';
CREATE INDEX facts_by_weight ON facts (user_id, importance, confirmed_at)
    WHERE status = 'active' AND ended IS NULL AND pinned = 0;

CREATE TABLE threads (
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    title TEXT,
    summary TEXT,
    summary_by TEXT,
    summarised_to INTEGER NOT NULL,
    summarised_at INTEGER,
    archived_to INTEGER NOT NULL,
    archived_at INTEGER,
    closing INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    indexed INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX threads_by_id ON threads (user_id, thread_id);
CREATE INDEX threads_closing ON threads (user_id) WHERE closing = 1;
CREATE INDEX threads_owed ON threads (user_id, indexed) WHERE indexed = 0;
CREATE INDEX threads_indexed ON threads (user_id) WHERE indexed = 1 AND archived_to > 0 AND summary <> '';

-- `documents` are headers; a document's text is its passages of the header's version, joined in their order.
CREATE TABLE documents (
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    domain TEXT,
    source TEXT,
    metadata TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    characters INTEGER NOT NULL,
    pages INTEGER,
    passages INTEGER NOT NULL,
    version INTEGER NOT NULL,
    incoming INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX documents_by_id ON documents (user_id, id);
CREATE INDEX documents_by_age ON documents (user_id, created_at, id);
CREATE INDEX documents_by_domain ON documents (user_id, domain, created_at, id) WHERE domain IS NOT NULL;
CREATE INDEX documents_processing ON documents (updated_at) WHERE status = 'processing';

CREATE TABLE passages (
    user_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    place INTEGER NOT NULL,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    page INTEGER,
    indexed INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX passages_by_place ON passages (user_id, document_id, version, place);
CREATE INDEX passages_by_id ON passages (user_id, id);
CREATE INDEX passages_owed ON passages (user_id, document_id, version, place, indexed) WHERE indexed = 0;
CREATE INDEX passages_indexed ON passages (user_id, indexed) WHERE indexed = 1;

CREATE TABLE attachments (
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    attached_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX attachments_by_thread ON attachments (user_id, thread_id, document_id);
CREATE INDEX attachments_by_document ON attachments (owner, document_id);

-- Neither tombstones nor receipts hold an id; an erasure holds it until all data is gone.
CREATE TABLE erasure_secret (number INTEGER PRIMARY KEY CHECK (number = 1), secret BLOB NOT NULL) STRICT;

CREATE TABLE tombstones (
    subject TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    at INTEGER NOT NULL,
    erasing TEXT NOT NULL
) STRICT;

CREATE TABLE erasures (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL,
    by TEXT NOT NULL,
    erased_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL,
    user_id TEXT,
    thread_id TEXT,
    counts TEXT NOT NULL,
    remaining TEXT NOT NULL,
    is_done INTEGER NOT NULL
) STRICT;
CREATE INDEX erasures_unfinished ON erasures (touched_at, id) WHERE is_done = 0;

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    role TEXT NOT NULL,
    user_id TEXT,
    name TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX keys_by_user ON keys (user_id) WHERE user_id IS NOT NULL;

-- Open rounds and conversations of OpenAI's clients.
CREATE TABLE client_records (
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    content TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX client_records_by_id ON client_records (user_id, id);
CREATE INDEX client_records_by_thread ON client_records (user_id, thread_id, id);
CREATE INDEX client_records_ending ON client_records (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE state (openings INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES (0);
PRAGMA user_version = 8;
COMMIT;
"""

# Sessions of the inspector.
_NINTH = """
BEGIN IMMEDIATE;
CREATE TABLE sessions (
    digest TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    user_id TEXT,
    is_admin INTEGER NOT NULL,
    key_id TEXT,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX sessions_by_name ON sessions (name, started_at DESC, digest);
CREATE INDEX sessions_ending ON sessions (expires_at);
PRAGMA user_version = 9;
COMMIT;
"""

# The messages between a user's message and its reply, of a turn that another agent ran: JSON.
_TENTH = """
BEGIN IMMEDIATE;
ALTER TABLE messages ADD COLUMN further TEXT;
PRAGMA user_version = 10;
COMMIT;
"""

# Hashes of what users said; the function is this code's own, see `migrate`.
_ELEVENTH = """
BEGIN IMMEDIATE;
ALTER TABLE messages ADD COLUMN said_hash TEXT;
UPDATE messages SET said_hash = said_hash(content) WHERE role = 'user' AND absent = 0;
CREATE INDEX messages_by_hash ON messages (user_id, said_hash, created_at, thread_id) WHERE said_hash IS NOT NULL;
PRAGMA user_version = 11;
COMMIT;
"""

# Metadata of facts, and the labels of agents.
_TWELFTH = """
BEGIN IMMEDIATE;
ALTER TABLE messages ADD COLUMN agent_id TEXT;
ALTER TABLE facts ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE facts ADD COLUMN agent_id TEXT;
ALTER TABLE documents ADD COLUMN agent_id TEXT;
ALTER TABLE keys ADD COLUMN agent_id TEXT;
PRAGMA user_version = 12;
COMMIT;
"""

# Which embedder serves, and which one is prepared beside it: JSON.
_THIRTEENTH = """
BEGIN IMMEDIATE;
CREATE TABLE embedder_choice (number INTEGER PRIMARY KEY CHECK (number = 1), content TEXT NOT NULL) STRICT;
PRAGMA user_version = 13;
COMMIT;
"""

_TERMS_OF_ITEMS = """\
ALTER TABLE {table} ADD COLUMN terms TEXT NOT NULL DEFAULT '[]';
ALTER TABLE {table} ADD COLUMN terms_by TEXT NOT NULL DEFAULT '';
CREATE INDEX {table}_by_terms ON {table} (user_id, terms_by);
CREATE TRIGGER {table}_gain_terms AFTER INSERT ON {table} WHEN new.terms <> '[]' BEGIN
    INSERT OR IGNORE INTO filter_terms SELECT new.user_id, '{kind}', value, new.{item} FROM json_each(new.terms);
END;
CREATE TRIGGER {table}_lose_terms AFTER DELETE ON {table} WHEN old.terms <> '[]' BEGIN
    DELETE FROM filter_terms WHERE user_id = old.user_id AND kind = '{kind}' AND item = old.{item}
    AND term IN (SELECT value FROM json_each(old.terms));
END;
CREATE TRIGGER {table}_change_terms AFTER UPDATE OF terms ON {table} WHEN new.terms <> old.terms BEGIN
    DELETE FROM filter_terms WHERE user_id = old.user_id AND kind = '{kind}' AND item = old.{item}
    AND term IN (SELECT value FROM json_each(old.terms));
    INSERT OR IGNORE INTO filter_terms SELECT new.user_id, '{kind}', value, new.{item} FROM json_each(new.terms);
END;"""
"""The columns and triggers by which the rows of a table have terms; its rows are named by the column `item`."""

# Terms of what MEMORY_FILTER_KEYS declares: beside each item as JSON, and inverted in a table of their own, which
# triggers keep, so that no write can miss it. `terms_by` names the keys with which they were made; how far, is JSON.
_FOURTEENTH = """
BEGIN IMMEDIATE;
CREATE TABLE filter_terms (
    user_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    term TEXT NOT NULL,
    item ANY NOT NULL,
    PRIMARY KEY (user_id, kind, term, item)
) STRICT, WITHOUT ROWID;
CREATE TABLE filter_filling (number INTEGER PRIMARY KEY CHECK (number = 1), content TEXT NOT NULL) STRICT;

{items}
PRAGMA user_version = 14;
COMMIT;
""".format(
    items="\n\n".join(
        _TERMS_OF_ITEMS.format(table=table, kind=kind, item=item)
        for table, kind, item in (
            ("messages", "episode", "seq"),
            ("facts", "fact", "id"),
            ("documents", "document", "id"),
        )
    )
)

SCRIPTS = (_EIGHTH, _NINTH, _TENTH, _ELEVENTH, _TWELFTH, _THIRTEENTH, _FOURTEENTH)
"""Each brings a file up by one version, the first an empty one to `FIRST_VERSION`.

Files were made by them, so they never change: a new version adds a script that ends with its number as `user_version`.
"""
VERSION = FIRST_VERSION + len(SCRIPTS) - 1


def prepare(connection: sqlite3.Connection, path: Path) -> int:
    """Migrate the file's tables to this version and count this opening; return the number of openings.

    Raises:
        ConfigurationError: the file is newer than this code, older than `FIRST_VERSION`, or not ours.
    """
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        raise ConfigurationError(
            f"{path} in DATA_DIR was written by a newer version (schema {found}, this one knows {VERSION}); "
            "upgrade Recollect or choose another DATA_DIR."
        )
    if found == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise ConfigurationError(f"{path} is another program's database; choose another DATA_DIR.")
    if 0 < found < FIRST_VERSION:
        raise ConfigurationError(
            f"{path} in DATA_DIR was written by an earlier version (schema {found}, this one opens {FIRST_VERSION} and "
            "later); run `recollect export` of the version before, then `recollect import` here with a new DATA_DIR."
        )
    migrate(connection, SCRIPTS, found=found)
    row = connection.execute("UPDATE state SET openings = openings + 1 RETURNING openings").fetchall()
    return row[0][0]


def migrate(connection: sqlite3.Connection, scripts: Sequence[str], *, found: int) -> None:
    """Run those of the `scripts` that a file of version `found` (0: an empty one) has not run yet, in their order."""
    connection.create_function("said_hash", 1, said_hash, deterministic=True)
    for script in scripts[max(0, found - FIRST_VERSION + 1) :]:
        connection.executescript(script)
