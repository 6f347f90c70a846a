"""Looks, after a load, for what was lost, is there twice, or stands in another order than it was said in."""

from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from benchmarks.connection import Connection
from benchmarks.scaling.callers import Users, user_id

_PAGE = 200


@dataclass(slots=True)
class Found:
    """Counts over all users.

    Turns that were answered and are gone, messages and facts that are there twice, users whose messages stand in
    another order, and answered turns whose update did not end well.
    """

    lost: int = 0
    twice: int = 0
    out_of_order: int = 0
    not_learned: int = 0

    @property
    def wrong(self) -> int:
        """Return the sum, which is 0 where all is well."""
        return self.lost + self.twice + self.out_of_order + self.not_learned


async def look(users: Users, port: int) -> Found:
    """Read back every user who was answered.

    Raises:
        RuntimeError: something cannot be read.
    """
    found = Found()
    connection = await Connection.to(port)
    for number, answered in users.answered.items():
        whose = f"user_id={user_id(number)}"
        messages = await _all(connection, f"/api/threads/t1/messages?{whose}")
        said = [message["content"] for message in messages if message["role"] == "user"]
        there = Counter(said)
        found.lost += sum(1 for text in answered if not there[text])
        found.twice += sum(count - 1 for count in there.values())
        # A turn that was given up may stand between; the answered ones keep the order in which they were said.
        kept = [text for text in said if text in set(answered)]
        found.out_of_order += kept != answered and sorted(kept) == sorted(answered)
        found.not_learned += await _not_learned(connection, users, number)
        facts = await _all(connection, f"/api/users/{user_id(number)}/facts")
        statements = Counter(fact["statement"] for fact in facts)
        found.twice += sum(count - 1 for count in statements.values())
    connection.close()
    return found


async def _not_learned(connection: Connection, users: Users, number: int) -> int:
    wrong = 0
    for said in range(users.said[number]):
        status, turn = await connection.get(f"/api/turns/{number}-{said}?user_id={user_id(number)}")
        # A turn that was given up may be there unfinished, or not at all.
        if status == 200 and turn.get("state") != "unfinished":
            wrong += turn["memory"]["update"]["status"] != "done"
    return wrong


async def _all(connection: Connection, path: str) -> list[dict[str, Any]]:
    """Return the items of all pages."""
    items = list[dict[str, Any]]()
    first = f"{path}{'&' if '?' in path else '?'}limit={_PAGE}"
    cursor = ""
    while True:
        status, page = await connection.get(first + cursor)
        if status != 200:
            raise RuntimeError(f"{path.partition('?')[0]} cannot be read ({status}).")
        items += page["items"]
        if not page.get("next_cursor"):
            return items
        cursor = f"&cursor={quote(page['next_cursor'])}"
