"""Counts in SQLite: ids by seeking from one to the next, everything else along one narrow index."""

from typing_extensions import override

from recollect.memory.ports.counts import Counted, Counts
from recollect.memory.stores.sqlite.database import SqliteDatabase
from recollect.memory.values.scope import GLOBAL_USER, Scope

USERS = """
WITH RECURSIVE found(user_id) AS (
    SELECT ''
    UNION ALL
    SELECT (SELECT min(next) FROM (
        SELECT (SELECT min(user_id) FROM messages WHERE user_id > found.user_id) AS next
        UNION ALL SELECT (SELECT min(user_id) FROM facts WHERE user_id > found.user_id)
        UNION ALL SELECT (SELECT min(user_id) FROM threads WHERE user_id > found.user_id)
        UNION ALL SELECT (SELECT min(user_id) FROM documents WHERE user_id > found.user_id)
    ))
    FROM found WHERE found.user_id IS NOT NULL
)
SELECT count(*) FROM found WHERE user_id NOT IN ('', :global)
"""
_NEXT_USER = "(SELECT min(user_id) FROM messages WHERE user_id > place.user_id)"
_NEXT_THREAD = "(SELECT min(thread_id) FROM messages WHERE user_id = place.user_id AND thread_id > place.thread_id)"
_FIRST_THREAD = f"(SELECT min(thread_id) FROM messages WHERE user_id = {_NEXT_USER})"
# The walk begins at the empty user id, which sorts before all others and has no threads.
_ALL_THREADS = f"""
WITH RECURSIVE place(user_id, thread_id) AS (
    SELECT '', ''
    UNION ALL
    SELECT iif({_NEXT_THREAD} IS NULL, {_NEXT_USER}, user_id), coalesce({_NEXT_THREAD}, {_FIRST_THREAD})
    FROM place WHERE user_id IS NOT NULL
)
SELECT count(*) FROM place WHERE user_id > ''
"""
_USERS_THREADS = """
WITH RECURSIVE place(thread_id) AS (
    SELECT min(thread_id) FROM messages WHERE user_id = :user
    UNION ALL
    SELECT (SELECT min(thread_id) FROM messages WHERE user_id = :user AND thread_id > place.thread_id)
    FROM place WHERE place.thread_id IS NOT NULL
)
SELECT count(*) FROM place WHERE thread_id IS NOT NULL
"""
_OPEN = "status = 'active' AND ended IS NULL"
OF_ALL = f"""
SELECT ({_ALL_THREADS}),
    (SELECT count(*) FROM messages INDEXED BY messages_by_position WHERE position % 2 = 0),
    (SELECT count(*) FROM messages) - (SELECT count(*) FROM messages INDEXED BY messages_absent WHERE absent = 1),
    (SELECT count(*) FROM facts INDEXED BY facts_open WHERE {_OPEN}),
    (SELECT count(*) FROM messages INDEXED BY messages_pending WHERE status = 'pending')
"""
OF_USER = f"""
SELECT ({_USERS_THREADS}),
    (SELECT count(*) FROM messages INDEXED BY messages_by_position WHERE user_id = :user AND position % 2 = 0),
    (SELECT count(*) FROM messages INDEXED BY messages_by_position WHERE user_id = :user)
    - (SELECT count(*) FROM messages INDEXED BY messages_absent WHERE user_id = :user AND absent = 1),
    (SELECT count(*) FROM facts INDEXED BY facts_open WHERE user_id = :user AND {_OPEN}),
    (SELECT count(*) FROM messages INDEXED BY messages_pending WHERE user_id = :user AND status = 'pending')
"""
_HERE = "user_id = :user AND thread_id = :thread"
OF_THREAD = f"""
SELECT EXISTS (SELECT 1 FROM messages WHERE {_HERE}),
    (SELECT count(*) FROM messages INDEXED BY messages_by_position WHERE {_HERE} AND position % 2 = 0),
    (SELECT count(*) FROM messages INDEXED BY messages_by_position WHERE {_HERE})
    - (SELECT count(*) FROM messages INDEXED BY messages_absent WHERE {_HERE} AND absent = 1),
    (SELECT count(*) FROM facts INDEXED BY facts_open WHERE user_id = :user AND home = :thread AND {_OPEN}),
    (SELECT count(*) FROM messages INDEXED BY messages_pending WHERE {_HERE} AND status = 'pending')
"""


class SqliteCounts(Counts):
    """Implements Counts over all tables."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    @override
    async def users(self) -> int:
        return (await self._database.read(USERS, {"global": GLOBAL_USER}))[0][0]

    @override
    async def count(self, scope: Scope | None) -> Counted:
        if scope is None:
            return Counted(*(await self._database.read(OF_ALL))[0])
        statement = OF_USER if scope.thread_id is None else OF_THREAD
        return Counted(*(await self._database.read(statement, {"user": scope.user_id, "thread": scope.thread_id}))[0])
