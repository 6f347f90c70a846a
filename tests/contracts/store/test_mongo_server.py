"""Checks what only the MongoDB documents have to do: two processes on one database, and servers that are not there."""

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient

from recollect.memory.language.said_hash import said_hash
from recollect.memory.ports.store import Store
from recollect.memory.stores.mongo import open_mongo_store
from recollect.memory.stores.mongo.connection import CONVERSATIONS, SCHEMA
from recollect.memory.stores.mongo.connection import MongoDatabase as Opened
from recollect.memory.stores.mongo.fact_document import from_fact
from recollect.memory.stores.mongo.schema import FIRST_VERSION, Migration, migrate
from recollect.memory.stores.update_json import update_to_json
from recollect.memory.values.errors import ConfigurationError, StoreUnavailable, ThreadBusy
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.update import not_owed, owed
from tests.contracts.store.conftest import MongoDatabase
from tests.contracts.store.samples import LEASE, NOW, SECOND, answer, asked, fact, failed, finish, indexed
from tests.contracts.store.suite.cut_off import cut_off
from tests.contracts.store.suite.past_turns import SETTLED, past, without_reply
from tests.contracts.store.suite.queue import Runs, started

T1 = Scope("ada", "t1")
CLOSED = "mongodb://someone:hunter2@127.0.0.1:1/?serverSelectionTimeoutMS=50"

Pair = tuple[Store, Store]


@pytest.fixture
async def pair(mongo_database: MongoDatabase) -> AsyncGenerator[Pair]:
    """Yield two open stores on one database, as two processes have them."""
    async with (
        open_mongo_store(*mongo_database) as one,
        open_mongo_store(*mongo_database) as other,
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
            store.updates.claim(user_id, owner=f"{number}", lease=LEASE, now=NOW)
            for number, store in enumerate(pair * 5)
        )
        assert len([claim for claim in await asyncio.gather(*claims) if claim]) == 1


async def test_accepts_of_two_processes_get_places_of_their_own(pair: Pair):
    turns = (store.conversations.accept(asked(f"{n}")) for n, store in enumerate(pair * 5))
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
        for number, store in enumerate((other, one, other, one, one, other)):
            tasks.append(asyncio.create_task(runs.turn(store.queue, number)))
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


async def test_what_a_claim_named_and_ended_is_free_though_it_is_pending_anew(pair: Pair):
    one, other = pair
    await finish(one, "turn1", update=owed())
    claim = await one.updates.claim("ada", owner="one", lease=LEASE, now=NOW, turns=["turn1"])
    assert claim is not None
    (turn,) = await one.updates.pending("ada", limit=9)
    assert await one.updates.record(turn, not_owed("x"), generation=claim.generation)
    ended = await one.conversations.turn(user_id="ada", turn_id="turn1")
    assert ended is not None
    assert await one.conversations.rewrite(ended, result={}, update=owed())
    taken = await other.updates.claim("ada", owner="other", lease=LEASE, now=NOW, turns=["turn1"])
    assert taken is not None
    assert await one.updates.claim("ada", owner="one", lease=LEASE, now=NOW) is None, "it is the other one's work now"


async def test_a_thread_is_free_with_the_reply_that_its_ticket_names(mongo_database: MongoDatabase):
    lease = timedelta(seconds=2)
    async with (
        open_mongo_store(*mongo_database, lease=lease) as one,
        open_mongo_store(*mongo_database, lease=lease) as other,
        AsyncMongoClient[dict[str, Any]](mongo_database.url) as client,
    ):
        runs = Runs()
        for number, following in enumerate((other, one, None)):
            message = asked(f"turn{number}")
            async with one.queue.turn(T1, wait_seconds=1, reply_id=answer(message).id) as hold:
                accepted = await one.conversations.accept(message)
                with pytest.raises(ThreadBusy):
                    await Runs().turn(other.queue, number, wait_seconds=0)
                assert await one.conversations.commit(answer(accepted), result={}, update=owed())
                hold.is_answered = True
            assert await tickets(client, mongo_database.name) == 1, "it is left where it is"
            if following is not None:
                await runs.turn(following.queue, number, wait_seconds=0)
            else:
                assert await other.erasures.delete_work(T1) == 0, "nobody works on the thread"
            assert await tickets(client, mongo_database.name) == 0
        assert runs.order == [0, 1]


async def test_a_ticket_that_is_left_goes_by_itself_though_its_turn_is_deleted(mongo_database: MongoDatabase):
    lease = timedelta(seconds=2)
    async with (
        open_mongo_store(*mongo_database, lease=lease) as one,
        open_mongo_store(*mongo_database, lease=lease) as other,
    ):
        async with one.queue.turn(T1, wait_seconds=1, reply_id=answer(asked()).id) as hold:
            hold.is_answered = True
        runs = Runs()
        await runs.turn(other.queue, 1, wait_seconds=5)
        assert runs.order == [1]


async def test_the_ticket_of_a_dead_process_is_skipped(mongo_database: MongoDatabase):
    lease = timedelta(seconds=2)
    async with open_mongo_store(*mongo_database) as living:
        dying = open_mongo_store(*mongo_database, owner="dying", lease=lease)
        dead = await dying.__aenter__()
        held = dead.queue.turn(T1, wait_seconds=1)
        await held.__aenter__()
        with pytest.raises(ThreadBusy):
            await Runs().turn(living.queue, 0, wait_seconds=3)  # Renewed meanwhile: a lease has passed.
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
        async with open_mongo_store(url, mongo_database.name, lease=lease) as store:
            await store.ping()
            async with store.queue.turn(T1, wait_seconds=1):
                message = await store.conversations.accept(asked())
                way.cut()
                with pytest.raises(StoreUnavailable):
                    await store.conversations.commit(answer(message), result={}, update=owed())
                with pytest.raises(StoreUnavailable):
                    await store.conversations.recent(T1, limit=9)
            with pytest.raises(StoreUnavailable):
                await Runs().turn(store.queue, 1)
            way.restore()
            await until_it_serves(store)
            # The ticket that could not be removed at the end of the turn stands in nobody's way.
            runs = Runs()
            await runs.turn(store.queue, 2, wait_seconds=10)
            assert runs.order == [2]
            assert await store.conversations.commit(answer(message), result={}, update=owed())


async def test_facts_before_the_first_version_stop_the_start_and_name_the_way_out(mongo_database: MongoDatabase):
    older = {name: value for name, value in from_fact(fact("old")).items() if name != "revision"}
    async with AsyncMongoClient[dict[str, Any]](mongo_database.url, tz_aware=True) as client:
        database = client[mongo_database.name]
        await database["user_facts"].insert_one(older)
        for _ in range(2):
            with pytest.raises(ConfigurationError, match=r"schema 1.*recollect export.*recollect import.*MONGODB"):
                async with open_mongo_store(*mongo_database) as store:
                    await store.ping()
        assert await database.list_collection_names() == ["user_facts"]


async def test_a_database_goes_through_the_migrations_that_it_has_not_been_through(mongo_database: MongoDatabase):
    runs: list[int] = []

    def migration(number: int) -> Migration:
        async def note(_: Opened) -> None:
            runs.append(number)

        return note

    async with open_mongo_store(*mongo_database) as store:
        await store.ping()
    async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
        opened = Opened(client[mongo_database.name], "")
        await opened[SCHEMA].delete_many({})
        for many in (0, 1, 1, 3):
            await migrate(opened, [migration(FIRST_VERSION + number) for number in range(1, many + 1)])
        assert runs == [FIRST_VERSION + 1, FIRST_VERSION + 2, FIRST_VERSION + 3]
        versions = [document["version"] async for document in opened[SCHEMA].find()]
        assert versions == [FIRST_VERSION + 3]


async def test_what_was_said_before_the_hashes_is_found_by_them(mongo_database: MongoDatabase):
    async with open_mongo_store(*mongo_database) as store:
        await finish(store, "turn1")
    async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
        opened = Opened(client[mongo_database.name], "")
        await opened[SCHEMA].delete_many({})
        await opened[CONVERSATIONS].update_many({}, {"$unset": {"said_hash": ""}})
    async with open_mongo_store(*mongo_database) as store:
        assert await store.conversations.threads_saying("ada", said_hash("hello."), limit=9) == ["t1"]


async def test_an_update_that_an_earlier_version_worded_is_rewritten(mongo_database: MongoDatabase):
    async with open_mongo_store(*mongo_database) as store:
        exchange = await finish(store, "turn1", update=failed())
        async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
            messages = client[mongo_database.name]["conversations"]
            text = update_to_json(failed()).replace(",", ", ")
            await messages.update_one({"_id": exchange.assistant.id}, {"$set": {"update": text}})
        turn = await store.conversations.turn(user_id="ada", turn_id="turn1")
        assert turn is not None
        assert not await store.conversations.rewrite(replace(turn, update=owed()), result={}, update=owed())
        assert await store.conversations.rewrite(turn, result={}, update=owed())
        assert not await store.conversations.rewrite(turn, result={}, update=failed("late"))


async def test_messages_of_an_earlier_version_were_all_said(mongo_database: MongoDatabase):
    always = Period(NOW, NOW + timedelta(days=1))
    async with open_mongo_store(*mongo_database) as store:
        exchange = await finish(store, "turn1", update=SETTLED)
        async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
            messages = client[mongo_database.name]["conversations"]
            later = dict.fromkeys(("imported_id", "absent", "said"), "")
            assert (await messages.update_many({}, {"$unset": later})).matched_count == 2
        found = list(exchange.messages)
        assert await store.conversations.messages(T1, limit=9) == found
        assert await store.conversations.recent(T1, limit=9) == [exchange]
        assert await store.conversations.count_messages("ada") == 2
        assert await store.conversations.count_indexed_messages() == 2
        assert await store.timeline.during(T1, always, limit=9) == found
        assert await store.timeline.preceding(found, count=3) == {found[1].id: [found[0].content]}
        assert await store.imports.insert([past(1), without_reply(past(2))]) == 1
        assert await store.conversations.count_indexed_messages() == 3
        assert await store.conversations.delete(T1) == 3


async def test_the_reply_of_a_deleted_turn_holds_up_no_import(mongo_database: MongoDatabase):
    async with open_mongo_store(*mongo_database) as store:
        gone = await finish(store, "gone")
        async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
            messages = client[mongo_database.name]["conversations"]
            await messages.delete_one({"_id": gone.user.id})
            await messages.update_one({"_id": gone.assistant.id}, {"$set": {"position": 0}})
            half = await store.conversations.accept(past(1).message)
            await messages.update_one({"_id": gone.assistant.id}, {"$set": {"position": half.position + 1}})
        assert await store.imports.insert([past(1), past(2)]) == 2
        listed = await store.conversations.messages(T1, limit=9)
        assert [message.position for message in listed] == [1, 2, 3, 4]
        assert {message.turn_id for message in listed} == {"turn1", "turn2"}


async def until_it_serves(store: Store) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                await store.ping()
            except StoreUnavailable:
                continue
            return


CALLS: dict[str, Callable[[Store], Awaitable[object]]] = {
    "ping": lambda store: store.ping(),
    "accept": lambda store: store.conversations.accept(asked()),
    "commit": lambda store: store.conversations.commit(answer(asked()), result={}, update=owed()),
    "turn": lambda store: store.conversations.turn(user_id="ada", turn_id="turn1"),
    "delete": lambda store: store.conversations.delete(T1),
    "pending users": lambda store: store.updates.pending_users(limit=1),
    "claim": lambda store: store.updates.claim("ada", owner="a", lease=SECOND, now=NOW),
    "insert": lambda store: store.facts.insert(fact()),
    "users": lambda store: anext(aiter(store.users())),
    "overviews": lambda store: store.conversations.overviews("ada", limit=1),
    "aged": lambda store: store.conversations.aged(before=NOW, limit=1),
    "names": lambda store: store.timeline.names("ada", limit=1),
    "preceding": lambda store: store.timeline.preceding([asked()], count=1),
    "import": lambda store: store.imports.insert([past(1)]),
    "record of thread": lambda store: store.threads.record(T1),
    "living": lambda store: store.facts.living(T1, at=NOW, limit=1),
    "queue": lambda store: Runs().turn(store.queue, 1),
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
    async with open_mongo_store(CLOSED, "recollect") as store:
        with pytest.raises(StoreUnavailable, match="MONGODB_URL") as caught:
            await CALLS[call](store)
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
        async with open_mongo_store(url, "recollect"):
            pass
    assert "hunter2" not in str(caught.value)


async def test_a_bad_database_name_stops_the_start():
    with pytest.raises(ConfigurationError, match="MONGODB_DATABASE"):
        async with open_mongo_store(CLOSED, "a b$"):
            pass


async def test_our_documents_carry_a_mark_and_are_read_without_it_too(mongo_database: MongoDatabase):
    async with (
        open_mongo_store(*mongo_database) as store,
        AsyncMongoClient[dict[str, Any]](mongo_database.url) as client,
    ):
        exchange = await finish(store, "turn1")
        assert await store.facts.insert(fact("one"))
        await store.updates.claim("ada", owner="me", lease=LEASE, now=NOW)
        await store.erasures.block("user", "one", at=NOW)
        database = client[mongo_database.name]
        names = await database.list_collection_names()
        for name in names:
            assert await database[name].count_documents({"recollect": {"$exists": False}}) == 0, name
            await database[name].update_many({}, {"$unset": {"recollect": ""}})
    async with open_mongo_store(*mongo_database) as store:
        assert await store.conversations.recent(T1, limit=9) == [exchange]
        assert await store.facts.fact(user_id="ada", fact_id="one") == fact("one")


@pytest.mark.parametrize(
    ("collection", "document"),
    [
        ("conversations", {"user_id": ObjectId(), "thread_id": "t", "role": "user", "content": "Hi", "timestamp": NOW}),
        ("user_facts", {"user_id": "ada", "facts": {"name": "Ada"}}),
        ("documents", {"_id": "report", "body": "…"}),
    ],
)
async def test_another_programs_documents_among_ours_stop_the_start(
    mongo_database: MongoDatabase, collection: str, document: dict[str, Any]
):
    async with open_mongo_store(*mongo_database) as store:
        await asyncio.gather(*(finish(store, f"{number}") for number in range(30)))
        assert await store.facts.insert(fact("one"))
    async with AsyncMongoClient[dict[str, Any]](mongo_database.url) as client:
        await client[mongo_database.name][collection].insert_one(dict(document))
    async with open_mongo_store(*mongo_database) as store:
        with pytest.raises(ConfigurationError, match=f"{collection}.*MONGODB_PREFIX"):
            await store.ping()
    async with open_mongo_store(*mongo_database, prefix="ours_") as store:
        assert await store.conversations.recent(T1, limit=9) == []
        exchange = await finish(store, "turn1")
        assert await store.conversations.recent(T1, limit=9) == [exchange]
        assert [batch async for batch in store.users()] == [["ada"]]
