"""How the index speaks of a Qdrant server that is away, refuses, is too old, or lost the collection."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

import grpc
import pytest
from qdrant_client import AsyncQdrantClient
from typing_extensions import override

from recollect.memory.ports.vector_index import Query, VectorIndex
from recollect.memory.stores.qdrant.collection import QdrantServer
from recollect.memory.stores.qdrant.index import open_qdrant_index
from recollect.memory.values.errors import ConfigurationError, IndexUnavailable, RecollectError, is_outage
from recollect.memory.values.scope import Scope
from tests.contracts.index.points import DIMENSION, MODEL, point, vector
from tests.contracts.index.scripted_qdrant import DONE, EXISTS, INDEXED, LEADS, MISSING, NAME, NO_ALIAS, SEVEN, serving

Server = QdrantServer | AsyncQdrantClient


def opened(server: Server) -> AbstractAsyncContextManager[VectorIndex]:
    return open_qdrant_index(server, base="outage", model=MODEL, dimension=DIMENSION)


CALLS: dict[str, Callable[[VectorIndex], Awaitable[Any]]] = {
    "ping": lambda index: index.ping(),
    "upsert": lambda index: index.upsert([point(1)]),
    "search": lambda index: index.search(Query(Scope("ada"), vector(1), limit=1)),
    "rank": lambda index: index.rank([Query(Scope("ada"), vector(1), limit=1)]),
    "fingerprints": lambda index: index.fingerprints([point(1).entry.id]),
    "entries": lambda index: index.entries([point(1).entry.id]),
    "ids": lambda index: index.ids(),
    "count": lambda index: index.count(),
    "remove": lambda index: index.remove(user_id="ada", ids=[point(1).entry.id]),
    "delete": lambda index: index.delete(Scope("ada")),
    "other_collections": lambda index: index.other_collections(),
}


class Aborts(grpc.GenericRpcHandler):
    """Says its version to a health check, and ends every other call with `code`."""

    def __init__(self, code: grpc.StatusCode, version: str) -> None:
        self.code = code
        self.version = version

    @override
    def service(self, handler_call_details: Any) -> Any:
        async def answer(_: bytes, context: Any) -> bytes:
            if handler_call_details.method.endswith("HealthCheck"):
                title, version = b"qdrant", self.version.encode()
                return b"\x0a%c%s\x12%c%s" % (len(title), title, len(version), version)
            await context.abort(self.code, "the text of ada: secret")
            raise AssertionError

        return cast(Any, grpc.unary_unary_rpc_method_handler(answer))


@asynccontextmanager
async def serving_grpc(code: grpc.StatusCode, version: str = "1.19.0") -> AsyncGenerator[QdrantServer]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Aborts(code, version),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield QdrantServer("http://127.0.0.1:1", grpc_port=port)
    await server.stop(None)


@pytest.mark.parametrize("prefer_grpc", [True, False], ids=["grpc", "http"])
@pytest.mark.parametrize("call", CALLS)
async def test_a_server_that_is_down_stops_no_start_and_fails_every_call(
    call: str, prefer_grpc: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with opened(QdrantServer("http://127.0.0.1:1", prefer_grpc=prefer_grpc, grpc_port=1)) as index:
            with pytest.raises(IndexUnavailable):
                await CALLS[call](index)
    assert "index_unavailable" in [getattr(record, "action", None) for record in caplog.records]


@pytest.mark.parametrize(
    ("status", "told"), [(500, "reached"), (503, "reached"), (429, "reached"), (401, "KEY"), (403, "KEY")]
)
async def test_http_troubles_are_unavailable(status: int, told: str) -> None:
    with serving(status=status) as (server, _):
        async with opened(server) as index:
            with pytest.raises(IndexUnavailable, match=told) as raised:
                await index.count()
    assert is_outage(raised.value)
    assert "ada" not in raised.value.message


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_refused_request_is_no_outage(status: int) -> None:
    with serving(status=status) as (server, _):
        async with opened(server) as index:
            with pytest.raises(RecollectError, match=str(status)) as raised:
                await index.count()
    assert not is_outage(raised.value)
    assert "ada" not in raised.value.message


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (grpc.StatusCode.UNAVAILABLE, "reached"),
        (grpc.StatusCode.INTERNAL, "reached"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "reached"),
        (grpc.StatusCode.UNAUTHENTICATED, "QDRANT_API_KEY"),
        (grpc.StatusCode.PERMISSION_DENIED, "QDRANT_API_KEY"),
    ],
)
async def test_grpc_troubles_are_unavailable(code: grpc.StatusCode, told: str) -> None:
    async with serving_grpc(code) as server, opened(server) as index:
        with pytest.raises(IndexUnavailable, match=told) as raised:
            await index.count()
    assert "ada" not in raised.value.message


async def test_a_refused_grpc_call_is_no_outage() -> None:
    async with serving_grpc(grpc.StatusCode.INVALID_ARGUMENT) as server, opened(server) as index:
        with pytest.raises(RecollectError, match="INVALID_ARGUMENT") as raised:
            await index.count()
    assert not is_outage(raised.value)


@pytest.mark.parametrize("version", ["1.18.4", "0.11.0", "1.9.7"])
async def test_an_old_server_stops_the_start_with_a_sentence(version: str) -> None:
    told = rf"QDRANT_URL has version {version}; upgrade it to 1\.19"
    with serving(version=version) as (server, _), pytest.raises(ConfigurationError, match=told):
        async with opened(server):
            pass
    async with serving_grpc(grpc.StatusCode.INTERNAL, version) as server:
        with pytest.raises(ConfigurationError, match=version):
            async with opened(server):
                pass


@pytest.mark.parametrize("version", ["1.19.0", "1.20.1-dev", "2.0.0", "v1.21.0"])
async def test_newer_servers_are_taken(version: str) -> None:
    with serving(version=version) as (server, _):
        async with opened(server) as index:
            with pytest.raises(IndexUnavailable):  # its collections answer 500
                await index.count()


async def test_a_server_that_comes_up_later_is_used_from_then_on() -> None:
    answers = {
        "/aliases": [NO_ALIAS],
        "/exists": [MISSING],
        "": [DONE],
        "/index": [INDEXED],
        ".current/points/count": [SEVEN],
    }
    with serving(status=503, answers=answers) as (server, handler):
        async with opened(server) as index:
            with pytest.raises(IndexUnavailable):
                await index.count()
            handler.status = 200
            assert await index.count() == 7
            handler.status = 503
            with pytest.raises(IndexUnavailable):
                await index.count()


async def test_an_old_server_that_comes_up_later_costs_the_search_only() -> None:
    with serving(status=200) as (server, handler):
        async with opened(server) as index:
            handler.version = "1.18.0"
            with pytest.raises(IndexUnavailable, match=r"version 1\.18\.0"):
                await index.count()


async def test_a_collection_that_another_process_creates_at_the_same_time_is_shared() -> None:
    conflict = (409, '{"status": {"error": "exists"}}')
    answers = {
        "/aliases": [NO_ALIAS, LEADS],
        "/collections/aliases": [conflict],
        "/exists": [MISSING, EXISTS],
        "": [conflict],
        "/index": [INDEXED],
        ".current/points/count": [SEVEN],
    }
    with serving(status=200, answers=answers) as (server, _):
        async with opened(server) as index:
            assert await index.count() == 7


async def test_a_collection_that_vanishes_twice_is_an_error_not_a_loop() -> None:
    gone = (404, '{"status": {"error": "no such collection"}}')
    answers = {"/aliases": [LEADS], "/index": [INDEXED], ".current/points/count": [gone]}
    with serving(status=200, answers=answers) as (server, _):
        async with opened(server) as index:
            with pytest.raises(RecollectError, match="404"):
                await index.count()


async def test_a_url_that_is_none_names_its_setting() -> None:
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        async with opened(QdrantServer("http://[nonsense")):
            pass


async def test_a_key_is_in_no_representation() -> None:
    assert "hush" not in repr(QdrantServer("http://127.0.0.1:1", api_key="hush"))


async def test_a_key_without_tls_is_logged_and_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with opened(QdrantServer("http://127.0.0.1:1", api_key="hush", grpc_port=1)):
            pass
    assert "index_key_without_tls" in [getattr(record, "action", None) for record in caplog.records]
    assert "hush" not in caplog.text


@pytest.mark.parametrize("call", CALLS)
async def test_a_collection_that_vanished_is_created_again(call: str) -> None:
    client = AsyncQdrantClient(":memory:")
    async with opened(client) as index:
        await index.upsert([point(1)])
        await client.delete_collection(NAME)
        await CALLS[call](index)
        assert await index.count() == (1 if call == "upsert" else 0)
        assert await client.collection_exists(NAME)
    await client.close()


async def test_opening_creates_nothing_before_the_first_call() -> None:
    client = AsyncQdrantClient(":memory:")
    async with opened(client) as index:
        assert not await client.collection_exists(NAME)
        await index.count()
        assert await client.collection_exists(NAME)
    assert await client.collection_exists(NAME)  # who did not open the client does not close it
    await client.close()
