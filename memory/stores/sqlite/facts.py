"""Keeps facts in SQLite. `home` is the thread's id for working memory, and "" for facts of all threads."""

import json
from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import override

from recollect.memory.ports.facts import FactFilter, Facts
from recollect.memory.stores.sqlite import fact_queries as sql
from recollect.memory.stores.sqlite.database import Row, SqliteDatabase
from recollect.memory.stores.sqlite.fact_rows import CREATED_AT, STATUS, from_fact, to_fact
from recollect.memory.stores.sqlite.narrowed import narrowed
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.filtering.narrow import ALL, Narrow
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import to_ms

_BATCH = 500


class SqliteFacts(Facts):
    """Implements Facts over the table of facts."""

    def __init__(self, database: SqliteDatabase, keys: FilterKeys) -> None:
        self._database = database
        self._keys = keys

    @override
    async def insert(self, fact: Fact) -> bool:
        return bool(await self.insert_all([fact]))

    @override
    async def insert_all(self, facts: Sequence[Fact]) -> set[str]:
        if not facts:
            return set()
        values = [value for fact in facts for value in from_fact(fact, self._keys)]
        return {fact_id for (fact_id,) in await self._database.write(sql.facts_inserted(len(facts)), values)}

    @override
    async def replace(self, fact: Fact, *, revision: int) -> bool:
        """Replace the fact; if it is forgotten now, remove its earlier text from the disk."""
        values = (*from_fact(fact, self._keys), fact.user_id, fact.id, revision)
        replaced = await self._database.write(sql.REPLACE, values)
        if replaced and fact.status == "forgotten":
            await self._database.cut_off_log()
        return bool(replaced)

    @override
    async def fact(self, *, user_id: str, fact_id: str) -> Fact | None:
        rows = await self._database.read(sql.FACT, (user_id, fact_id))
        return to_fact(rows[0]) if rows else None

    @override
    async def facts(self, *, user_id: str, fact_ids: Sequence[str]) -> list[Fact]:
        rows = await self._database.read(sql.several_facts(len(fact_ids)), (user_id, *fact_ids)) if fact_ids else []
        return [to_fact(row) for row in rows]

    @override
    async def living(
        self,
        scope: Scope,
        *,
        at: datetime,
        limit: int,
        with_global: bool = False,
        keys: Collection[str] | None = None,
    ) -> list[Fact]:
        values = _living_values(scope, at=at, limit=limit, with_global=with_global)
        if keys is None:
            return _newest(await self._database.read(sql.LIVING, values), limit)
        return _newest(await self._database.read(sql.LIVING_UNDER, {**values, "keys": json.dumps([*keys])}), limit)

    @override
    async def proposed(self, scope: Scope, *, limit: int) -> list[Fact]:
        values = {"user": scope.user_id, "home": scope.thread_id, "limit": limit}
        return _newest(await self._database.read(sql.PROPOSED, values), limit)

    @override
    async def known(self, scope: Scope, *, at: datetime, living: int, proposed: int) -> tuple[list[Fact], list[Fact]]:
        values = _living_values(scope, at=at, limit=living, with_global=True)
        rows = await self._database.read(sql.KNOWN, {**values, "proposed": proposed})
        waiting = [row for row in rows if row[STATUS] == "proposed"]
        return _newest([row for row in rows if row[STATUS] != "proposed"], living), _newest(waiting, proposed)

    @override
    async def page(self, user_id: str, shown: FactFilter, *, limit: int, after: str | None = None) -> list[Fact]:
        statement = sql.page_statement(shown, follows=after is not None)
        rows = await self._database.read(statement, sql.page_values(user_id, shown, limit=limit, after=after))
        rows.sort(key=_by_age, reverse=shown.newest_first)
        return [to_fact(row) for row in rows[:limit]]

    @override
    async def notes(
        self, user_id: str, *, at: datetime, tag: str | None = None, limit: int, after: str | None = None
    ) -> list[Fact]:
        values = {"user": user_id, "at": to_ms(at), "tag": tag, "limit": limit, "after": after}
        return [to_fact(row) for row in await self._database.read(sql.NOTES, values)]

    @override
    async def successors(self, *, user_id: str, fact_id: str) -> list[Fact]:
        return [to_fact(row) for row in await self._database.read(sql.SUCCESSORS, (user_id, fact_id))]

    @override
    async def owed(self, *, user_id: str, limit: int) -> list[Fact]:
        return [to_fact(row) for row in await self._database.read(sql.OWED, (user_id, limit))]

    @override
    async def owed_users(self, *, limit: int) -> list[str]:
        return [user_id for (user_id,) in await self._database.read(sql.OWED_USERS, (limit,))]

    @override
    async def mark_indexed(self, facts: Sequence[Fact]) -> set[str]:
        if not facts:
            return set()
        revisions = [value for fact in facts for value in (fact.id, fact.revision)]
        statement = sql.facts_marked_indexed(len(facts))
        return {fact_id for (fact_id,) in await self._database.write(statement, (facts[0].user_id, *revisions))}

    @override
    async def indexed(self, *, user_id: str | None = None, where: Narrow = ALL) -> AsyncIterator[Sequence[Fact]]:
        statement = sql.INDEXED if user_id is None else sql.INDEXED_OF_USER
        values: dict[str, Any] = {"limit": _BATCH, "after": 0, "user": user_id}
        statement = narrowed(statement, where, "fact", self._keys, values)
        while rows := await self._database.read(statement, values):
            yield [to_fact(row[:-1]) for row in rows]
            values["after"] = rows[-1][-1]

    @override
    async def count_indexed(self) -> int:
        return (await self._database.read(sql.COUNT_INDEXED))[0][0]

    @override
    async def every(self, user_id: str) -> AsyncIterator[Sequence[Fact]]:
        after = ""
        while rows := await self._database.read(sql.EVERY, (user_id, after, _BATCH)):
            facts = [to_fact(row) for row in rows]
            yield facts
            after = facts[-1].id

    @override
    async def aged(self, *, before: datetime, limit: int) -> list[Fact]:
        return [to_fact(row) for row in await self._database.read(sql.AGED, (to_ms(before), limit))]

    @override
    async def count_open(self, scope: Scope) -> int:
        if scope.thread_id is None:
            return (await self._database.read(sql.COUNT_OPEN_OF_USER, (scope.user_id,)))[0][0]
        return (await self._database.read(sql.COUNT_OPEN_OF_THREAD, (scope.user_id, scope.thread_id)))[0][0]

    @override
    async def has_notes(self, scope: Scope, *, besides: Sequence[str] = ()) -> bool:
        given = (scope.user_id, json.dumps(list(besides)))
        return bool((await self._database.read(sql.HAS_NOTES, given))[0][0])

    @override
    async def weakest(self, scope: Scope, *, limit: int) -> list[Fact]:
        if scope.thread_id is None:
            rows = await self._database.read(sql.WEAKEST_OF_USER, (scope.user_id, limit))
        else:
            rows = await self._database.read(sql.WEAKEST_OF_THREAD, (scope.user_id, scope.thread_id, limit))
        return [to_fact(row) for row in rows]

    @override
    async def remove(self, *, user_id: str, fact_ids: Sequence[str]) -> int:
        if not fact_ids:
            return 0
        return await self._database.erase(sql.facts_removed(len(fact_ids)), (user_id, *fact_ids))

    @override
    async def delete(self, scope: Scope) -> int:
        if scope.thread_id is None:
            return await self._database.delete("DELETE FROM facts WHERE user_id = ? RETURNING 1", (scope.user_id,))
        return await self._database.erase(
            "DELETE FROM facts WHERE user_id = ? AND home = ? RETURNING 1", (scope.user_id, scope.thread_id)
        )


def _living_values(scope: Scope, *, at: datetime, limit: int, with_global: bool) -> dict[str, object]:
    shared = GLOBAL_USER if with_global and scope.user_id != GLOBAL_USER else None
    return {"user": scope.user_id, "home": scope.thread_id, "global": shared, "at": to_ms(at), "limit": limit}


def _newest(rows: list[Row], limit: int) -> list[Fact]:
    rows.sort(key=_by_age, reverse=True)
    return [to_fact(row) for row in rows[:limit]]


def _by_age(row: Row) -> tuple[int, str]:
    return row[CREATED_AT], row[0]
