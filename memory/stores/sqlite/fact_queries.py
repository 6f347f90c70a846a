"""Holds the statements over the SQLite table of facts.

Facts of two or three homes (the user's own, a thread's, the global ones) are each read in order from an index and no
further than the limit; together they are unordered, and the caller sorts them.
"""

from typing import get_args

from recollect.memory.ports.facts import FactFilter
from recollect.memory.stores.sqlite.fact_rows import FACT_COLUMNS
from recollect.memory.values.fact import FactStatus
from recollect.memory.values.times import to_ms

_WRITTEN = f"{FACT_COLUMNS}, home, terms, terms_by"
_PLACES = ", ".join("?" * (_WRITTEN.count(",") + 1))
_OPEN = "status = 'active' AND ended IS NULL"
_AHEAD = "status = 'active' AND ended IS NOT NULL AND ifnull(valid_to, 9223372036854775807) > :at"
_HOLDS = "status = 'active' AND valid_from <= :at AND (valid_to IS NULL OR valid_to > :at)"
_PLACE_OF_AFTER = "(SELECT created_at, id FROM facts WHERE user_id = :user AND id = :after)"
_TAGGED = "EXISTS (SELECT 1 FROM json_each(facts.tags) AS tag WHERE tag.value = :tag)"
_SAYS = "instr(casefold(coalesce(key, '') || char(10) || value || char(10) || statement), :text)"
_STATUSES: tuple[str, ...] = get_args(FactStatus)

REPLACE = f"""
UPDATE facts SET ({_WRITTEN}) = ({_PLACES}) WHERE user_id = ? AND id = ? AND revision = ? RETURNING 1
"""
FACT = f"SELECT {FACT_COLUMNS} FROM facts WHERE user_id = ? AND id = ?"
NOTES = f"""
SELECT {FACT_COLUMNS} FROM facts INDEXED BY facts_by_home
WHERE user_id = :user AND home = '' AND key IS NULL AND {_HOLDS} AND (:tag IS NULL OR {_TAGGED})
    AND (:after IS NULL OR (created_at, id) < {_PLACE_OF_AFTER})
ORDER BY created_at DESC, id DESC LIMIT :limit
"""
SUCCESSORS = f"SELECT {FACT_COLUMNS} FROM facts WHERE user_id = ? AND replaces = ? ORDER BY created_at, id"
OWED = f"SELECT {FACT_COLUMNS} FROM facts WHERE user_id = ? AND indexed = 0 LIMIT ?"
OWED_USERS = "SELECT DISTINCT user_id FROM facts WHERE indexed = 0 LIMIT ?"
INDEXED = f"""
SELECT {FACT_COLUMNS}, rowid FROM facts NOT INDEXED
WHERE indexed = 1 AND {_OPEN} AND rowid > :after ORDER BY rowid LIMIT :limit
"""
INDEXED_OF_USER = f"""
SELECT {FACT_COLUMNS}, rowid FROM facts INDEXED BY facts_indexed
WHERE user_id = :user AND indexed = 1 AND {_OPEN} AND rowid > :after ORDER BY rowid LIMIT :limit
"""
COUNT_INDEXED = f"SELECT count(*) FROM facts INDEXED BY facts_indexed WHERE indexed = 1 AND {_OPEN}"
EVERY = f"SELECT {FACT_COLUMNS} FROM facts WHERE user_id = ? AND id > ? ORDER BY id LIMIT ?"
AGED = f"""
SELECT {FACT_COLUMNS} FROM facts WHERE pinned = 0 AND status <> 'forgotten' AND confirmed_at < ?
ORDER BY confirmed_at LIMIT ?
"""
COUNT_OPEN_OF_USER = f"SELECT count(*) FROM facts INDEXED BY facts_open WHERE user_id = ? AND {_OPEN}"
COUNT_OPEN_OF_THREAD = f"SELECT count(*) FROM facts WHERE user_id = ? AND home = ? AND {_OPEN}"
HAS_NOTES = f"""
SELECT EXISTS (
    SELECT 1 FROM facts INDEXED BY facts_open
    WHERE user_id = ? AND {_OPEN} AND key IS NULL
        AND (turn_id IS NULL OR turn_id NOT IN (SELECT value FROM json_each(?)))
)
"""
WEAKEST_OF_USER = f"""
SELECT {FACT_COLUMNS} FROM facts INDEXED BY facts_by_weight
WHERE user_id = ? AND {_OPEN} AND pinned = 0 ORDER BY importance, confirmed_at LIMIT ?
"""
WEAKEST_OF_THREAD = f"""
SELECT {FACT_COLUMNS} FROM facts INDEXED BY facts_open
WHERE user_id = ? AND home = ? AND {_OPEN} AND pinned = 0 ORDER BY importance, confirmed_at LIMIT ?
"""


def _union(where: str, *, homes: tuple[str, ...], order: str) -> str:
    """Return the statement that lists facts of several homes. A home or user that is NULL finds and costs nothing."""
    parts = (f"SELECT {FACT_COLUMNS} FROM facts WHERE {home} AND {where} {order}" for home in homes)
    return " UNION ALL ".join(f"SELECT * FROM ({part})" for part in parts)


def _in_order(direction: str) -> str:
    return f"ORDER BY created_at {direction}, id {direction} LIMIT :limit"


_OWN, _HERE, _SHARED = (
    "user_id = :user AND home = ''",
    "user_id = :user AND home = :home",
    "user_id = :global AND home = ''",
)
_NOT_OVER = f"{_OPEN} AND (valid_to IS NULL OR valid_to > :at)"


def _living(where: str = "") -> str:
    """Return the statement that lists living facts, those that fulfil `where`."""
    # A user's superseded facts are few, so all of them are read.
    homes = (_OWN, _HERE, _SHARED)
    parts = (
        _union(_NOT_OVER + where, homes=homes, order=_in_order("DESC")),
        _union(_AHEAD + where, homes=homes, order=""),
    )
    return " UNION ALL ".join(parts)


LIVING = _living()
LIVING_UNDER = _living(" AND key IN (SELECT value FROM json_each(:keys))")
PROPOSED = _union("status = 'proposed'", homes=(_OWN, _HERE), order=_in_order("DESC"))
KNOWN = f"SELECT * FROM ({LIVING}) UNION ALL SELECT * FROM ({PROPOSED.replace(':limit', ':proposed')})"
"""Both in one hop to the thread that reads; the second ones' status tells them apart."""


def page_statement(shown: FactFilter, *, follows: bool) -> str:
    """Return the statement of one page; with `follows` it starts behind the fact :after."""
    conditions = [_HOLDS if shown.status in {None, "active"} else f"status = '{_checked(shown.status)}'"]
    if shown.scope is not None:
        conditions.append("scope = :scope")
    if shown.tag is not None:
        conditions.append(_TAGGED)
    if shown.text is not None:
        conditions.append(_SAYS)
    if shown.source is not None:
        conditions.append("source = :source")
    if shown.keyed is not None:
        conditions.append("key IS NOT NULL" if shown.keyed else "key IS NULL")
    if follows:
        conditions.append(f"(created_at, id) {'<' if shown.newest_first else '>'} {_PLACE_OF_AFTER}")
    if shown.scope == "thread":
        homes = ("user_id = :user AND home > ''",) if shown.thread_id is None else (_HERE,)
    else:
        homes = (_OWN,) if shown.thread_id is None or shown.scope is not None else (_OWN, _HERE)
    return _union(" AND ".join(conditions), homes=homes, order=_in_order("DESC" if shown.newest_first else "ASC"))


def page_values(user_id: str, shown: FactFilter, *, limit: int, after: str | None) -> dict[str, object]:
    """Return the values for `page_statement`."""
    return {
        "user": user_id,
        "home": shown.thread_id,
        "at": to_ms(shown.as_of or shown.now),
        "scope": shown.scope,
        "tag": shown.tag,
        "text": None if shown.text is None else shown.text.casefold(),
        "source": shown.source,
        "after": after,
        "limit": limit,
    }


def facts_inserted(count: int) -> str:
    """Return the statement that inserts `count` facts and returns the id of each new one."""
    rows = ", ".join([f"({_PLACES})"] * count)
    return f"INSERT INTO facts ({_WRITTEN}) VALUES {rows} ON CONFLICT (user_id, id) DO NOTHING RETURNING id"


def facts_marked_indexed(count: int) -> str:
    """Return the statement that marks `count` facts of a user, each at a revision, and returns the id of each."""
    given = ", ".join(["(?, ?)"] * count)
    return f"UPDATE facts SET indexed = 1 WHERE user_id = ? AND (id, revision) IN (VALUES {given}) RETURNING id"


def several_facts(count: int) -> str:
    """Return the statement that finds a user's facts by `count` ids."""
    return f"SELECT {FACT_COLUMNS} FROM facts WHERE user_id = ? AND id IN ({', '.join('?' * count)})"


def facts_removed(count: int) -> str:
    """Return the statement that deletes a user's facts by `count` ids."""
    return f"DELETE FROM facts WHERE user_id = ? AND id IN ({', '.join('?' * count)}) RETURNING 1"


def _checked(status: FactStatus | None) -> str:
    return _STATUSES[_STATUSES.index(status or "active")]
