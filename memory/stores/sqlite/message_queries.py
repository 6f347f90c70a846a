"""Holds the statements over the SQLite table of messages. A reply's position is even; the indexes use that."""

from recollect.memory.stores.sqlite.rows import exchange_columns, message_columns, turn_columns

_WITH_MESSAGE = """
CROSS JOIN messages AS message
ON message.user_id = reply.user_id AND message.turn_id = reply.turn_id AND message.role = 'user'
"""
_NOT_PENDING = """
NOT EXISTS (
    SELECT 1 FROM messages AS reply INDEXED BY messages_by_turn
    WHERE reply.user_id = message.user_id AND reply.turn_id = message.turn_id AND reply.role = 'assistant'
    AND reply.status = 'pending'
)
"""

ACCEPT = """
INSERT INTO messages
    (user_id, thread_id, turn_id, role, name, content, metadata, imported_id, absent, said_hash, agent_id, terms,
     terms_by, position, created_at)
SELECT :user, :thread, :turn, :role, :name, :content, :metadata, :imported, :absent, :hash, :agent, :terms, :terms_by,
    newest + 1 + newest % 2, max(:now, latest + 1)
FROM (SELECT
    (SELECT coalesce(max(position), 0) FROM messages WHERE user_id = :user AND thread_id = :thread) AS newest,
    (SELECT coalesce(max(created_at), 0) FROM messages WHERE user_id = :user AND thread_id = :thread) AS latest)
WHERE true
ON CONFLICT (user_id, turn_id, role) DO NOTHING
RETURNING position, created_at
"""
COMMIT = """
INSERT INTO messages
    (user_id, thread_id, turn_id, role, name, content, metadata, imported_id, absent, agent_id, terms, terms_by,
     position, created_at, result, status, indexed, update_json, said)
SELECT :user, :thread, :turn, :role, :name, :content, :metadata, :imported, :absent, :agent, :terms, :terms_by,
    :position, :now, :result, :status, :indexed, :update, 2 - absent - :absent
FROM messages
WHERE user_id = :user AND turn_id = :turn AND role = 'user' AND thread_id = :thread AND position = :position - 1
ON CONFLICT DO NOTHING
RETURNING 1
"""
TURN = f"""
SELECT {message_columns()}, result, update_json FROM messages WHERE user_id = ? AND turn_id = ? ORDER BY role DESC
"""
MESSAGES = f"""
SELECT {message_columns()} FROM messages
WHERE user_id = :user AND thread_id = :thread AND position > :after AND absent = 0 ORDER BY position LIMIT :limit
"""
RECENT = f"""
SELECT {exchange_columns()} FROM messages AS reply {_WITH_MESSAGE}
WHERE reply.user_id = ? AND reply.thread_id = ? AND reply.position < ? AND reply.position % 2 = 0
ORDER BY reply.position DESC LIMIT ?
"""
EXCHANGES = f"""
SELECT {exchange_columns()} FROM messages AS reply {_WITH_MESSAGE}
WHERE reply.user_id = ? AND reply.thread_id = ? AND reply.position > ? + 1 AND reply.position % 2 = 0
ORDER BY reply.position LIMIT ?
"""
SAYING = """
SELECT thread_id FROM messages INDEXED BY messages_by_hash
WHERE user_id = ? AND said_hash = ? ORDER BY created_at DESC LIMIT ?
"""
LAST_POSITION = "SELECT coalesce(max(position), 0) FROM messages WHERE user_id = ? AND thread_id = ?"
COUNT_OF_THREAD = """
SELECT count(*) FROM
(SELECT 1 FROM messages WHERE user_id = ? AND thread_id = ? AND position % 2 = 0 LIMIT ?)
"""
COUNT_OF_USER = """
SELECT count(*) FROM
(SELECT 1 FROM messages INDEXED BY messages_by_position WHERE user_id = ? AND position % 2 = 0 LIMIT ?)
"""
COUNT_MESSAGES = """
SELECT
    (SELECT count(*) FROM messages INDEXED BY messages_by_position WHERE user_id = :user)
    - (SELECT count(*) FROM messages INDEXED BY messages_absent WHERE user_id = :user AND absent = 1)
"""
# Seeks from one thread's id to the next, then reads each thread's latest time, then counts those on the page.
OVERVIEWS = """
WITH RECURSIVE
threads(thread_id) AS (
    SELECT min(thread_id) FROM messages WHERE user_id = :user
    UNION ALL
    SELECT (SELECT min(thread_id) FROM messages WHERE user_id = :user AND thread_id > threads.thread_id)
    FROM threads WHERE threads.thread_id IS NOT NULL
),
latest(thread_id, at) AS (
    SELECT thread_id,
        (SELECT max(created_at) FROM messages WHERE user_id = :user AND thread_id = threads.thread_id)
    FROM threads WHERE thread_id IS NOT NULL
),
page(thread_id, at) AS MATERIALIZED (
    SELECT thread_id, at FROM latest
    WHERE :before_at IS NULL OR (at, thread_id) < (:before_at, :before_thread)
    ORDER BY at DESC, thread_id DESC LIMIT :limit
)
SELECT thread_id, at,
    (SELECT max(position) FROM messages WHERE user_id = :user AND thread_id = page.thread_id),
    (
        SELECT count(*) FROM messages INDEXED BY messages_by_position
        WHERE user_id = :user AND thread_id = page.thread_id AND position % 2 = 0
    ),
    (
        SELECT count(*) FROM messages INDEXED BY messages_by_position
        WHERE user_id = :user AND thread_id = page.thread_id
    ) - (
        SELECT count(*) FROM messages INDEXED BY messages_absent
        WHERE user_id = :user AND thread_id = page.thread_id AND absent = 1
    )
FROM page ORDER BY at DESC, thread_id DESC
"""
# A thread's first message is found by its position, its title by its id.
OVERVIEWS_SAYING = OVERVIEWS.replace(
    "FROM threads WHERE thread_id IS NOT NULL\n",
    """FROM threads WHERE thread_id IS NOT NULL AND instr(casefold(thread_id || char(10) || coalesce((
        SELECT title FROM main.threads AS record WHERE record.user_id = :user AND record.thread_id = threads.thread_id
    ), '') || char(10) || coalesce((
        SELECT content FROM messages
        WHERE user_id = :user AND thread_id = threads.thread_id AND absent = 0 ORDER BY position LIMIT 1
    ), '')), :text)
""",
)
OPENINGS = """
SELECT wanted.value, (
    SELECT substr(content, 1, :characters) FROM messages
    WHERE user_id = :user AND thread_id = wanted.value AND absent = 0 ORDER BY position LIMIT 1
) AS opening
FROM json_each(:threads) AS wanted WHERE opening IS NOT NULL
"""
OVERVIEW = """
SELECT thread_id, max(created_at), max(position), sum(position % 2 = 0), count(*) - sum(absent)
FROM messages INDEXED BY messages_by_position WHERE user_id = ? AND thread_id = ? GROUP BY thread_id
"""
OVERVIEW_OF_AGENT = OVERVIEW.replace("GROUP BY", "AND agent_id = ? GROUP BY")
INDEXED = f"""
SELECT {exchange_columns()}, reply.seq FROM messages AS reply {_WITH_MESSAGE}
WHERE reply.indexed = 1 AND reply.seq > :after AND (:user IS NULL OR reply.user_id = :user)
ORDER BY reply.seq LIMIT :limit
"""
INDEXED_OF_USER = INDEXED.replace("(:user IS NULL OR reply.user_id = :user)", "reply.user_id = :user")
COUNT_INDEXED = "SELECT coalesce(sum(said), 0) FROM messages INDEXED BY messages_searchable WHERE indexed = 1"
TURNS = f"""
SELECT {turn_columns()} FROM messages AS reply INDEXED BY messages_by_turn {_WITH_MESSAGE}
WHERE reply.user_id = :user AND reply.turn_id > :after AND reply.role = 'assistant'
ORDER BY reply.turn_id LIMIT :limit
"""
# Two parts, the rest of one thread and the threads behind it, each of which the index gives in order.
EVERY = f"""
SELECT {exchange_columns()}, reply.result, reply.update_json
FROM messages AS message INDEXED BY messages_by_position
LEFT JOIN messages AS reply INDEXED BY messages_by_turn
ON reply.user_id = message.user_id AND reply.turn_id = message.turn_id AND reply.role = 'assistant'
WHERE message.user_id = :user AND message.position % 2 = 1
"""
EVERY_OF_THREAD = f"""
{EVERY} AND message.thread_id = :thread AND message.position > :after ORDER BY message.position LIMIT :limit
"""
EVERY_BEHIND = f"""
{EVERY} AND message.thread_id > :thread ORDER BY message.thread_id, message.position LIMIT :limit
"""
REWRITE = """
UPDATE messages SET result = :result, update_json = :update, status = :status, indexed = :indexed
WHERE user_id = :user AND turn_id = :turn AND role = 'assistant' AND update_json = :stored RETURNING 1
"""
RECOMMIT = """
UPDATE messages SET content = :content, name = :name, metadata = :metadata, created_at = :now, absent = 0,
    terms = :terms, terms_by = :terms_by,
    said = :said, result = :result, update_json = :update, status = :status, indexed = :indexed,
    generation = coalesce(:generation, generation)
WHERE user_id = :user AND turn_id = :turn AND role = 'assistant' AND update_json = :stored
    AND generation <= coalesce(:generation, generation)
RETURNING 1
"""
RETRACT = """
DELETE FROM messages WHERE user_id = :user AND turn_id = :turn AND role = 'assistant' AND update_json = :stored
RETURNING 1
"""
UPDATE = "SELECT update_json FROM messages WHERE user_id = ? AND turn_id = ? AND role = 'assistant'"
AGED = f"""
SELECT {message_columns("message")} FROM messages AS message INDEXED BY messages_by_age
WHERE message.role = 'user' AND message.created_at < ? AND {_NOT_PENDING}
ORDER BY message.created_at, message.seq LIMIT ?
"""
OLDEST = f"""
SELECT {message_columns("message")} FROM messages AS message INDEXED BY messages_of_user_by_age
WHERE message.role = 'user' AND message.user_id = ? AND {_NOT_PENDING}
ORDER BY message.created_at, message.seq LIMIT ?
"""
DELETE_USER = "DELETE FROM messages WHERE user_id = ? RETURNING 1 - absent"
DELETE_THREAD = "DELETE FROM messages WHERE user_id = ? AND thread_id = ? RETURNING 1 - absent"


def turns_statement(count: int) -> str:
    """Return the statement that finds a user's stored turns, also unfinished, by `count` ids."""
    return f"""
SELECT {exchange_columns()}, reply.result, reply.update_json FROM messages AS message INDEXED BY messages_by_turn
LEFT JOIN messages AS reply INDEXED BY messages_by_turn
ON reply.user_id = message.user_id AND reply.turn_id = message.turn_id AND reply.role = 'assistant'
WHERE message.user_id = ? AND message.turn_id IN ({", ".join("?" * count)}) AND message.role = 'user'
"""


def turns_removed(count: int) -> str:
    """Return the statement that deletes both messages of `count` turns of a user."""
    return f"DELETE FROM messages WHERE user_id = ? AND turn_id IN ({', '.join('?' * count)}) RETURNING 1 - absent"
