"""Watches each command that the service sends to MongoDB: those of a turn's and a caller's path lead with the user."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pymongo import MongoClient, monitoring
from pymongo.database import Database
from pymongo.errors import OperationFailure
from typing_extensions import override

from recollect.api.app import create_app
from recollect.settings import Settings
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import model_settings
from tests.service.support.scripts import learning

Json = dict[str, Any]
NOT_BY_USER: Mapping[str, str] = {
    "keys": "a request brings a key, from which its user is yet to be found",
    "sessions": "a request brings a cookie, from which its user is yet to be found",
    "thread_queue": "a document is found by a hash, so that none names a user who was erased",
    "processes": "a document is a process, not a user",
    "claims": "a document is found by a hash, so that none names a user who was erased",
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
}
"""The service's own queries over all users, by collection and fields: each is in the table of docs/servers.md."""


class Watch(monitoring.CommandListener):
    """Keeps each command to one database: its name, its collection, a filter of it, and all of it.

    The driver keeps a listener for good, so that one serves all tests.
    """

    def __init__(self) -> None:
        self.database = ""
        self.seen: list[tuple[str, str, Json, Json]] = []

    @override
    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.database_name == self.database:
            name, command = event.command_name, dict(event.command)
            self.seen += [(name, str(command[name]), each, command) for each in _filters(name, command)]

    @override
    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Ignore it."""

    @override
    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Ignore it."""


def _filters(name: str, command: Mapping[str, Any]) -> list[Json]:
    if name in {"update", "delete"}:
        return [dict(each["q"]) for each in command[f"{name}s"]]
    if name == "aggregate":
        return [dict(command["pipeline"][0].get("$match", {}))]
    if name in {"find", "findAndModify", "count", "distinct"}:
        return [dict(command.get("filter" if name == "find" else "query", {}))]
    return []


ADA: Json = {"user_id": "ada"}
watch = Watch()
monitoring.register(watch)


@pytest.fixture
def database(mongodb_url: str) -> Iterator[str]:
    """Yield the name of a database of the test's own, which is watched and dropped afterwards."""
    name = f"recollect_test_{uuid4().hex[:12]}"
    yield name
    watch.database = ""
    with MongoClient[Json](mongodb_url) as client:
        client.drop_database(name)


@asynccontextmanager
async def opened(tmp_path: Path, database: str, mongodb_url: str) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield a client of the service in this process, whose commands are watched once it is open."""
    with FakeOpenAI() as fake:
        fake.on_chat = learning
        chosen = model_settings(fake.url, MONGODB_URL=mongodb_url, MONGODB_DATABASE=database)
        lower: Json = {name.lower(): value for name, value in chosen.items()}
        app = create_app(Settings(data_dir=tmp_path, embedding_model="lexical", **lower))
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1234))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=60) as http,
        ):
            await asked(http, "get", "/health/ready")
            watch.seen.clear()
            watch.database = database
            yield http


async def asked(http: httpx.AsyncClient, method: str, path: str, **given: Any) -> Json:
    answer = await http.request(method, path, **given)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json() if answer.content and "json" in answer.headers["content-type"] else {}


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
