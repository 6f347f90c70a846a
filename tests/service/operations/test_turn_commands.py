"""Counts the commands that a turn with one fact learned sends to MongoDB, and those of a wait for a turn."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import httpx

from tests.service.support.mongo_commands import Json, asked, opened, watch

WRITES = frozenset({"insert", "update", "delete", "findAndModify"})
MOST_COMMANDS, MOST_WRITES = 20, 8
"""Of the turn, its reply and its update, as docs/benchmarks.md says."""
OWN_COMMANDS, OWN_WRITES = 3, 3
"""Of the process, whatever number of turns runs: every 5 s its lease, and two that remove answered turns' tickets. The
epoch of erasures, once a second, and the embedder's record, every 2 s, are not counted."""
T1: Json = {"user_id": "ada", "thread_id": "t1"}
NOBODY = "http://127.0.0.1:9"
WAITED = 2


async def turn(http: httpx.AsyncClient, said: str) -> str:
    """Run a turn whose id the service makes; return it."""
    turn_id: str = (await asked(http, "post", "/api/agent", json={**T1, "message": said}))["turn_id"]
    return turn_id


async def settled(http: httpx.AsyncClient, turn_id: str) -> Json:
    """Wait until the turn's update has ended and its point is made; return it. Nothing of the waiting is watched."""
    await asyncio.sleep(0.7)
    watch.database = ""
    update: Json = {"status": "pending"}
    while update["status"] == "pending":
        update = (await asked(http, "get", f"/api/turns/{turn_id}", params={"user_id": "ada"}))["memory"]["update"]
    return update


async def test_a_turn_with_one_fact_sends_no_more_commands_than_the_page_says(
    tmp_path: Path, database: str, mongodb_url: str
):
    counted: list[Counter[tuple[str, str]]] = []
    taken: list[float] = []
    async with opened(tmp_path, database, mongodb_url, sweep_seconds=3600) as http:
        for said in ("My city is Oslo.", "My pet is Rex.", "My hobby is chess.", "My car is red.", "My tea is green."):
            watch.commands.clear()
            watch.database = database
            began = time.monotonic()
            assert len((await settled(http, await turn(http, said)))["changes"]) == 1
            taken.append(time.monotonic() - began)
            counted.append(Counter(watch.commands))
    # The first turns open their connections and read what is kept afterwards.
    asked_for_all = [seen["find", "tombstones"] + seen["find", "schema"] for seen in counted[2:]]
    totals = [seen.total() - own for seen, own in zip(counted[2:], asked_for_all, strict=True)]
    writes = [sum(count for (name, _), count in seen.items() if name in WRITES) for seen in counted[2:]]
    assert min(totals) <= MOST_COMMANDS, counted
    assert min(writes) <= MOST_WRITES, counted
    assert max(totals) <= MOST_COMMANDS + OWN_COMMANDS, counted
    assert max(writes) <= MOST_WRITES + OWN_WRITES, counted
    assert max(own / seconds for own, seconds in zip(asked_for_all, taken[2:], strict=True)) <= 4, (
        "one epoch and one record for all users, the epoch at most once a second"
    )


async def test_a_wait_for_another_processs_work_asks_four_times_a_second_at_most(
    tmp_path: Path, database: str, mongodb_url: str
):
    chosen: Json = {"worker": "off", "qdrant_url": NOBODY, "memory_wait_seconds": WAITED}
    async with opened(tmp_path, database, mongodb_url, **chosen) as http:
        body = {**T1, "message": "My city is Oslo."}
        began = time.monotonic()
        answer = await asked(http, "post", "/api/agent", json={**body, "wait_for_memory": True})
        taken = time.monotonic() - began
        watch.database = ""
    assert answer["memory"]["update"]["status"] == "pending"
    asked_for = [query for name, where, query, _ in watch.seen if (name, where) == ("find", "conversations")]
    looks = sum(1 for query in asked_for if isinstance(query.get("_id"), dict))
    assert taken >= WAITED
    # Two waits are side by side: the caller's, and the graph's own last node. Four further looks are the turn's.
    assert 4 <= looks <= 2 * (taken / 0.25 + 1) + 4
