"""Watches each command that the service sends to MongoDB: those of a turn's and a caller's path lead with the user."""

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure

from tests.service.support.mongo_commands import Json, asked, opened, watch

NOT_BY_USER: Mapping[str, str] = {
    "keys": "a request brings a key, from which its user is yet to be found",
    "sessions": "a request brings a cookie, from which its user is yet to be found",
    "thread_queue": "a document is found by a hash, so that none names a user who was erased",
    "processes": "a document is a process, not a user",
    "claims": "a document is found by a hash, so that none names a user who was erased",
    "rate_leases": "a document is found by a hash, so that none names a caller",
    "tombstones": "a document is found by a hash, so that none names a user who was erased",
    "erasures": "an erasure is found by its id, and by being unfinished; few are there",
    "schema": "three documents of the whole database",
}
"""The collections that stay on one shard, each with the reason why its queries name no user."""
SWEEPS: Mapping[tuple[str, frozenset[str]], str] = {
    ("conversations", frozenset({"status"})): "whose updates are owed",
    ("conversations", frozenset({"status", "user_id"})): "whose updates are owed, beside the users found so far",
    ("user_facts", frozenset({"indexed", "user_id"})): "whose facts the index is owed",
    ("threads", frozenset({"indexed", "user_id"})): "whose threads the index is owed",
    ("threads", frozenset({"closing"})): "threads to be summarised",
    ("documents", frozenset[str]()): "whether anybody has a document, so that searches need not ask again",
    ("documents", frozenset({"status"})): "documents that a stopped process has left unfinished",
    ("client_records", frozenset({"expires_at"})): "records that have expired",
    **{
        (held, frozenset({"user_id"})): "all users, one after another, whose items lack the terms of filter keys"
        for held in ("conversations", "user_facts", "threads", "documents")
    },
}
"""The service's own queries over all users, by collection and fields: each is in the table of docs/servers.md."""

OVER_A_USER: Mapping[tuple[str, frozenset[str]], str] = {
    ("conversations", frozenset({"user_id", "said"})): "a user's messages are counted, for the page of figures",
    ("threads", frozenset({"user_id", "thread_id"})): "an erasure deletes a thread's record, and scans for it",
}
"""The queries that look through all that one user has in a collection, by collection and fields."""

ADA: Json = {"user_id": "ada"}


async def live(http: httpx.AsyncClient) -> tuple[str, str]:
    """Run turns and read what a caller may; return the ids of a document and a fact."""
    both = {**ADA, "thread_id": "t1"}
    paper = {**ADA, "title": "Rivers", "text": "The Orinoco is long. It is a river of the south."}
    document = (await asked(http, "post", "/api/documents", json=paper))["id"]
    await asked(http, "put", f"/api/threads/t1/documents/{document}", params=ADA)
    for turn, said in (("one", "My city is Oslo."), ("two", "My city is Bergen."), ("three", "Where is my city?")):
        await asked(http, "post", "/api/agent", json={**both, "turn_id": turn, "message": said})
    await asked(http, "post", "/api/agent", json={**both, "turn_id": "three", "message": "Where is my city?"})
    fact = (await asked(http, "put", "/api/users/ada/facts/by-key/pet", json={"value": "cat"}))["id"]
    for path in (
        "/api/turns/two",
        "/api/threads",
        "/api/threads/t1",
        "/api/threads/t1/messages",
        "/api/threads/t1/documents",
        "/api/documents",
        f"/api/documents/{document}",
        "/api/memory",
        "/memory-stats",
    ):
        await asked(http, "get", path, params=ADA)
    for path in ("", f"/{fact}", f"/{fact}/history"):
        await asked(http, "get", f"/api/users/ada/facts{path}")
    await asked(http, "post", "/api/memory/search", json={**ADA, "query": "city last week", "thread_id": "t1"})
    await asked(http, "post", "/api/context", json={**both, "message": "Which river is long?"})
    return document, fact


async def change(http: httpx.AsyncClient, document: str, fact: str) -> None:
    """Change and delete what a caller may."""
    await asked(http, "patch", "/api/threads/t1", params=ADA, json={"title": "Cities"})
    await asked(http, "patch", f"/api/users/ada/facts/{fact}", json={"value": "dog"})
    await asked(http, "post", "/api/turns/two/undo", params=ADA)
    await asked(http, "delete", f"/api/users/ada/facts/{fact}")
    await asked(http, "delete", f"/api/threads/t1/documents/{document}", params=ADA)
    await asked(http, "delete", f"/api/documents/{document}", params=ADA)
    await asked(http, "delete", "/api/threads/t1", params=ADA)


def leads(query: Json) -> bool:
    """Tell whether the filter begins with one user, or with named ones."""
    user = query.get("user_id")
    named = isinstance(user, str) or (isinstance(user, dict) and "$in" in user)
    return named and next(iter(query)) == "user_id"


def indexed_fields(database: Database[Json], collection: str) -> list[list[str]]:
    """Return the fields of each of the collection's indexes, in their order."""
    return [[field for field, _ in index["key"]] for index in database[collection].index_information().values()]


def is_indexed(query: Json, indexes: list[list[str]]) -> bool:
    """Tell whether an index begins with two fields of the query, or with its only one; `_id` finds single documents.

    It is the part of `explain` that needs no server's help: how many keys that comes to, only a server can tell.
    """
    branches = [{**query, **branch} for branch in query.get("$or", [{}])]
    for branch in branches:
        fields = {field for field in branch if not field.startswith("$")}
        found = any(fields.issuperset(index[: min(2, len(fields))]) for index in indexes)
        if fields and "_id" not in fields and not found:
            return False
    return True


async def test_every_query_of_a_turn_and_of_a_callers_reads_names_the_user(
    tmp_path: Path, database: str, mongodb_url: str
):
    async with opened(tmp_path, database, mongodb_url) as http:
        await change(http, *await live(http))
        seen = list(watch.seen)
    ours = [(name, where, query) for name, where, query, _ in seen if where not in NOT_BY_USER]
    scattered = {
        (name, where, str(query))
        for name, where, query in ours
        if not leads(query) and (where, frozenset(query)) not in SWEEPS
    }
    assert scattered == set()
    with MongoClient[Json](mongodb_url) as client:
        indexes = {name: indexed_fields(client[database], name) for name in {where for _, where, _ in ours}}
    unindexed = {(where, frozenset(query)) for _, where, query in ours if not is_indexed(query, indexes[where])}
    assert unindexed <= OVER_A_USER.keys()
    led = {(name, where) for name, where, query in ours if leads(query)}
    for used in ("conversations", "user_facts", "threads", "documents", "passages", "attachments", "client_records"):
        assert used in {where for _, where in led}
    assert {"find", "update", "delete", "aggregate"} <= {name for name, _ in led}


async def test_no_read_examines_much_more_than_it_returns(tmp_path: Path, database: str, mongodb_url: str):
    with MongoClient[Json](mongodb_url) as client:
        if examined(client[database], {"find": "conversations", "filter": {}}) is None:
            pytest.skip("the server's `explain` counts neither the keys nor the documents that a query examines")
        async with opened(tmp_path, database, mongodb_url) as http:
            for number in range(40):
                said: Json = {"user": {"content": f"My pet{number} is a cat."}, "assistant": {"content": "I see."}}
                for user in ("ada", "bob"):
                    await asked(http, "post", "/api/exchanges", json={"user_id": user, "thread_id": "t0", **said})
            watch.seen.clear()
            await live(http)
            reads = [command for name, _, query, command in watch.seen if name == "find" and leads(query)]
            watch.database = ""
            assert reads
            for read in reads:
                counted = examined(client[database], read)
                assert counted is not None
                keys, documents, returned = counted
                assert max(keys, documents) <= 2 * returned + 10, (read["find"], read["filter"], counted)


def examined(database: Database[Json], find: Json) -> tuple[int, int, int] | None:
    """Return how many keys and documents the query examines, and how many it returns; None where nobody counts."""
    query = {name: find[name] for name in ("find", "filter", "sort", "limit", "projection") if name in find}
    try:
        told = database.command({"explain": query, "verbosity": "executionStats"})
    except OperationFailure:
        return None
    figures = told.get("executionStats", {})
    names = ("totalKeysExamined", "totalDocsExamined", "nReturned")
    return (figures[names[0]], figures[names[1]], figures[names[2]]) if all(name in figures for name in names) else None
