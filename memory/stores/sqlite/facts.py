"""Facts in SQLite. `home` says where a fact lives: a thread's id for working memory, "" for the user's own."""

from datetime import datetime

from memory.fact import Fact
from memory.scope import Scope
from memory.stores.sqlite.database import Database, Row
from memory.stores.sqlite.rows import FACT_COLUMNS, from_fact, to_fact
from memory.times import to_ms

_PLACES = ", ".join("?" * (FACT_COLUMNS.count(",") + 2))
_CREATED_AT = FACT_COLUMNS.split(", ").index("created_at")
_AFTER = "(created_at, id) > (SELECT created_at, id FROM facts WHERE user_id = :user AND id = :after)"

INSERT = f"""
INSERT INTO facts ({FACT_COLUMNS}, home) VALUES ({_PLACES}) ON CONFLICT (user_id, id) DO NOTHING RETURNING 1
"""
END = """
UPDATE facts SET valid_to = ?, updated_at = ? WHERE user_id = ? AND id = ? AND valid_to IS NULL RETURNING 1
"""
CONFIRM = """
UPDATE facts SET confirmed_at = max(confirmed_at, ?) WHERE user_id = ? AND id = ? AND valid_to IS NULL RETURNING 1
"""
FACT = f"SELECT {FACT_COLUMNS} FROM facts WHERE user_id = ? AND id = ?"


def _living(*, direction: str, beyond: str = "true") -> str:
    """Living facts of two homes, each read in order from the index and no further than the limit; unordered together.

    Without a thread, :home is "" too, and only the first half is read.
    """
    order = f"ORDER BY created_at {direction}, id {direction} LIMIT :limit"
    living = f"SELECT {FACT_COLUMNS} FROM facts WHERE user_id = :user AND valid_to IS NULL AND {beyond} AND home ="
    return f"SELECT * FROM ({living} '' {order}) UNION ALL SELECT * FROM ({living} :home AND :home <> '' {order})"


LIVING = _living(direction="DESC")
FIRST_PAGE = _living(direction="ASC")
NEXT_PAGE = _living(direction="ASC", beyond=_AFTER)


class SqliteFacts:
    """The facts table as the port wants it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, fact: Fact) -> bool:
        """See the port."""
        return bool(await self._database.write(INSERT, from_fact(fact)))

    async def end(self, fact: Fact, *, at: datetime) -> bool:
        """See the port."""
        moment = to_ms(at)
        return bool(await self._database.write(END, (moment, moment, fact.user_id, fact.id)))

    async def confirm(self, fact: Fact, *, at: datetime) -> bool:
        """See the port."""
        return bool(await self._database.write(CONFIRM, (to_ms(at), fact.user_id, fact.id)))

    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        """See the port."""
        rows = await self._database.read(FACT, (user_id, fact_id))
        return to_fact(rows[0]) if rows else None

    async def living(self, scope: Scope, *, limit: int) -> list[Fact]:
        """See the port."""
        values = {"user": scope.user_id, "home": scope.thread_id or "", "limit": limit}
        rows = await self._database.read(LIVING, values)
        rows.sort(key=_by_age, reverse=True)
        return [to_fact(row) for row in rows[:limit]]

    async def page(self, scope: Scope, *, limit: int, after: str | None = None) -> list[Fact]:
        """See the port. `after` may have ended since; where it is gone altogether the page is empty."""
        values = {"user": scope.user_id, "home": scope.thread_id or "", "limit": limit, "after": after}
        rows = await self._database.read(FIRST_PAGE if after is None else NEXT_PAGE, values)
        rows.sort(key=_by_age)
        return [to_fact(row) for row in rows[:limit]]

    async def delete(self, scope: Scope) -> int:
        """See the port."""
        if scope.thread_id is None:
            return await self._database.erase("DELETE FROM facts WHERE user_id = ? RETURNING 1", (scope.user_id,))
        return await self._database.erase(
            "DELETE FROM facts WHERE user_id = ? AND home = ? RETURNING 1", (scope.user_id, scope.thread_id)
        )


def _by_age(row: Row) -> tuple[int, str]:
    return row[_CREATED_AT], row[0]
