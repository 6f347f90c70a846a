"""What only the MongoDB documents have to do: two processes on one database, and servers that are not there."""

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from memory.dates import Period
from memory.documents import Documents
from memory.errors import ConfigurationError, StoreUnavailable, ThreadBusy
from memory.fact import Ended
from memory.scope import Scope
from memory.stores.mongo import open_mongo_documents
from memory.stores.mongo.fact_document import from_fact
from memory.stores.update_json import update_to_json
from memory.update import owed
from tests.contracts.documents.conftest import MongoDatabase
from tests.contracts.documents.cut_off import cut_off
from tests.contracts.documents.past_turns import SETTLED, past, without_reply
from tests.contracts.documents.queue import Runs, started
from tests.contracts.documents.samples import LEASE, NOW, SECOND, answer, asked, fact, failed, finish, indexed

T1 = Scope("ada", "t1")
CLOSED = "mongodb://someone:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=50"

Pair = tuple[Documents, Documents]


@pytest.fixture
async def pair(mongo_database: MongoDatabase) -> AsyncGenerator[Pair]:
    """Two open stores on one database, as two processes have them."""
    async with (
        open_mongo_documents(*mongo_database) as one,
        open_mongo_documents(*mongo_database) as other,
    ):
        yield one, other


async def test_a_claim_excludes_other_processes(pair: Pair):
    one, other = pair
    first = await one.updates.claim("ada", owner="one", lease=LEASE, now=NOW)
    assert first is not None
    assert await other.updates.claim("ada", owner="other", lease=LEASE, now=NOW) is None
    second = await other.updates.claim("ada", owner="other", lease=LEASE, now=NOW + LEASE)
    assert second is not None
    assert not await one.updates.renew(first, lease=LEASE, now=NOW)
    await finish(one, "turn1", update=owed())
    (turn,) = await other.updates.pending("ada", limit=9)
    assert await other.updates.record(turn, indexed(), generation=second.generation)
    assert not await one.updates.record(turn, owed(), generation=first.generation)


async def test_of_claims_of_two_processes_at_once_one_wins(pair: Pair):
    for user_id in ("ada", "bob", "cleo"):
        claims = (
            documents.updates.claim(user_id, owner=f"{number}", lease=LEASE, now=NOW)
            for number, documents in enumerate(pair * 5)
        )
        assert len([claim for claim in await asyncio.gather(*claims) if claim]) == 1


async def test_accepts_of_two_processes_get_places_of_their_own(pair: Pair):
    turns = (documents.conversations.accept(asked(f"{n}")) for n, documents in enumerate(pair * 5))
    stored = await asyncio.gather(*turns)
    assert sorted(message.position for message in stored) == list(range(1, 20, 2))


async def test_turns_of_two_processes_run_one_at_a_time(pair: Pair):
    runs = Runs()
    await asyncio.gather(*(runs.turn(pair[number % 2].queue, number) for number in range(12)))
    assert sorted(runs.order) == list(range(12))
    for start in (0, 1):
        own = [number for number in runs.order if number % 2 == start]
        assert own == sorted(own)


async def test_turns_of_two_processes_run_in_order_of_arrival(pair: Pair, mongo_database: MongoDatabase):
    one, other = pair
    runs = Runs()
    async with one.queue.turn(T1, wait_seconds=1), AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
        tasks: list[asyncio.Task[None]] = []
        for number, documents in enumerate((other, one, other, one, one, other)):
            tasks.append(asyncio.create_task(runs.turn(documents.queue, number)))
            async with asyncio.timeout(5):
                while await tickets(client, mongo_database.name) < number + 2:
                    await started(*tasks)
        with pytest.raises(ThreadBusy):
            await Runs().turn(other.queue, 99, wait_seconds=0)
        assert runs.order == []
    await asyncio.gather(*tasks)
    assert runs.order == list(range(6))


async def tickets(client: AsyncMongoClient[dict[str, Any]], name: str) -> int:
    line = await client[name]["thread_queue"].find_one({})
    return len(line["tickets"]) if line else 0


async def test_an_idle_queue_keeps_nothing(pair: Pair, mongo_database: MongoDatabase):
    runs = Runs()
    await asyncio.gather(*(runs.turn(pair[number % 2].queue, number) for number in range(6)))
    async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
        assert await client[mongo_database.name]["thread_queue"].find({}).to_list() == []


async def test_the_ticket_of_a_dead_process_is_skipped(mongo_database: MongoDatabase):
    lease = timedelta(seconds=0.8)
    async with open_mongo_documents(*mongo_database) as living:
        dying = open_mongo_documents(*mongo_database, owner="dying", lease=lease)
        dead = await dying.__aenter__()
        held = dead.queue.turn(T1, wait_seconds=1)
        await held.__aenter__()
        with pytest.raises(ThreadBusy):
            await Runs().turn(living.queue, 0, wait_seconds=1.3)  # Renewed meanwhile: a lease has passed.
        await dying.__aexit__(None, None, None)  # Its ticket stays, as after a kill; nothing renews it.
        runs = Runs()
        await runs.turn(living.queue, 1, wait_seconds=10)
        assert runs.order == [1]
        await held.__aexit__(None, None, None)


@pytest.mark.usefixtures("driver_leak")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_lost_server_is_unavailable_and_comes_back(mongo_database: MongoDatabase):
    async with cut_off(mongo_database.url) as way:
        url = f"mongodb://127.0.0.1:{way.port}/?serverSelectionTimeoutMS=300&heartbeatFrequencyMS=500"
        lease = timedelta(seconds=1)
        async with open_mongo_documents(url, mongo_database.name, lease=lease) as documents:
            await documents.ping()
            async with documents.queue.turn(T1, wait_seconds=1):
                message = await documents.conversations.accept(asked())
                way.cut()
                with pytest.raises(StoreUnavailable):
                    await documents.conversations.commit(answer(message), result={}, update=owed())
                with pytest.raises(StoreUnavailable):
                    await documents.conversations.recent(T1, limit=9)
            with pytest.raises(StoreUnavailable):
                await Runs().turn(documents.queue, 1)
            way.restore()
            await until_it_serves(documents)
            # The ticket that could not be removed at the end of the turn stands in nobody's way.
            runs = Runs()
            await runs.turn(documents.queue, 2, wait_seconds=10)
            assert runs.order == [2]
            assert await documents.conversations.commit(answer(message), result={}, update=owed())


async def test_documents_of_an_earlier_version_are_brought_up(mongo_database: MongoDatabase):
    end = NOW + SECOND
    later = ("status", "proposes", "ended", "revision", "indexed", "history", "state", "until")
    given = [fact("old", valid_to=end), fact("new", replaces="old", turn_id="turn2"), fact("gone", valid_to=end)]
    async with AsyncMongoClient[dict[str, Any]](mongo_database.url, tz_aware=True) as client:
        stored = [{k: v for k, v in from_fact(each).items() if k not in later} for each in given]
        await client[mongo_database.name]["user_facts"].insert_many(stored)
    for _ in range(2):
        async with open_mongo_documents(*mongo_database) as documents:
            owed_facts = await documents.facts.owed(user_id="ada", limit=9)
            assert sorted(owed_facts, key=lambda each: each.id) == [
                replace(given[2], ended=Ended("turn", end)),
                given[1],
                replace(given[0], ended=Ended("turn", end, "turn2")),
            ]
            assert await documents.facts.living(T1, at=end, limit=9) == [given[1]]


async def test_an_update_that_an_earlier_version_worded_is_rewritten(mongo_database: MongoDatabase):
    async with open_mongo_documents(*mongo_database) as documents:
        exchange = await finish(documents, "turn1", update=failed())
        async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
            messages = client[mongo_database.name]["conversations"]
            text = update_to_json(failed()).replace(",", ", ")
            await messages.update_one({"_id": exchange.assistant.id}, {"$set": {"update": text}})
        turn = await documents.conversations.turn(user_id="ada", turn_id="turn1")
        assert turn is not None
        assert not await documents.conversations.rewrite(replace(turn, update=owed()), result={}, update=owed())
        assert await documents.conversations.rewrite(turn, result={}, update=owed())
        assert not await documents.conversations.rewrite(turn, result={}, update=failed("late"))


async def test_messages_of_an_earlier_version_were_all_said(mongo_database: MongoDatabase):
    always = Period(NOW, NOW + timedelta(days=1))
    async with open_mongo_documents(*mongo_database) as documents:
        exchange = await finish(documents, "turn1", update=SETTLED)
        async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
            messages = client[mongo_database.name]["conversations"]
            later = dict.fromkeys(("imported_id", "absent", "said"), "")
            assert (await messages.update_many({}, {"$unset": later})).matched_count == 2
        found = list(exchange.messages)
        assert await documents.conversations.messages(T1, limit=9) == found
        assert await documents.conversations.recent(T1, limit=9) == [exchange]
        assert await documents.conversations.count_messages("ada") == 2
        assert await documents.conversations.count_indexed_messages() == 2
        assert await documents.timeline.during(T1, always, limit=9) == found
        assert await documents.timeline.preceding(found, count=3) == {found[1].id: [found[0].content]}
        assert await documents.imports.insert([past(1), without_reply(past(2))]) == 1
        assert await documents.conversations.count_indexed_messages() == 3
        assert await documents.conversations.delete(T1) == 3


async def test_the_reply_of_a_deleted_turn_holds_up_no_import(mongo_database: MongoDatabase):
    async with open_mongo_documents(*mongo_database) as documents:
        gone = await finish(documents, "gone")
        async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
            messages = client[mongo_database.name]["conversations"]
            await messages.delete_one({"_id": gone.user.id})
            await messages.update_one({"_id": gone.assistant.id}, {"$set": {"position": 0}})
            half = await documents.conversations.accept(past(1).message)
            await messages.update_one({"_id": gone.assistant.id}, {"$set": {"position": half.position + 1}})
        assert await documents.imports.insert([past(1), past(2)]) == 2
        listed = await documents.conversations.messages(T1, limit=9)
        assert [message.position for message in listed] == [1, 2, 3, 4]
        assert {message.turn_id for message in listed} == {"turn1", "turn2"}


async def until_it_serves(documents: Documents) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                await documents.ping()
            except StoreUnavailable:
                continue
            return


CALLS: dict[str, Callable[[Documents], Awaitable[object]]] = {
    "ping": lambda documents: documents.ping(),
    "accept": lambda documents: documents.conversations.accept(asked()),
    "commit": lambda documents: documents.conversations.commit(answer(asked()), result={}, update=owed()),
    "turn": lambda documents: documents.conversations.turn(user_id="ada", turn_id="turn1"),
    "delete": lambda documents: documents.conversations.delete(T1),
    "pending users": lambda documents: documents.updates.pending_users(limit=1),
    "claim": lambda documents: documents.updates.claim("ada", owner="a", lease=SECOND, now=NOW),
    "insert": lambda documents: documents.facts.insert(fact()),
    "users": lambda documents: anext(aiter(documents.users())),
    "overviews": lambda documents: documents.conversations.overviews("ada", limit=1),
    "aged": lambda documents: documents.conversations.aged(before=NOW, limit=1),
    "names": lambda documents: documents.timeline.names("ada", limit=1),
    "preceding": lambda documents: documents.timeline.preceding([asked()], count=1),
    "import": lambda documents: documents.imports.insert([past(1)]),
    "record of thread": lambda documents: documents.threads.record(T1),
    "living": lambda documents: documents.facts.living(T1, at=NOW, limit=1),
    "queue": lambda documents: Runs().turn(documents.queue, 1),
}


@pytest.fixture
def driver_leak() -> Generator[None]:
    """PyMongo 4.20, closed while it connects, leaves that socket to the garbage collector, which warns."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.usefixtures("driver_leak")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("call", CALLS)
async def test_without_a_server_the_start_succeeds_and_calls_are_unavailable(call: str):
    async with open_mongo_documents(CLOSED, "recollect") as documents:
        with pytest.raises(StoreUnavailable, match="MONGODB_URL") as caught:
            await CALLS[call](documents)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://localhost",
        "mongodb://",
        "mongodb://u:hunter2@h:port/",
        "mongodb://a:b@c@hunter2/",
    ],
)
async def test_a_bad_address_stops_the_start(url: str):
    with pytest.raises(ConfigurationError, match="MONGODB_URL") as caught:
        async with open_mongo_documents(url, "recollect"):
            pass
    assert "hunter2" not in str(caught.value)


async def test_a_bad_database_name_stops_the_start():
    with pytest.raises(ConfigurationError, match="MONGODB_DATABASE"):
        async with open_mongo_documents(CLOSED, "a b$"):
            pass
