import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta

import pytest

from recollect.memory.ports.filtering.filter_terms import Filling
from recollect.memory.ports.store import Store
from recollect.memory.recall.known_terms import KnownTerms
from recollect.memory.values.document import Document
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import document_item, fact_item, message_item
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys, read_filter_keys
from recollect.memory.values.filtering.narrow import MADE, Narrow, without
from recollect.memory.values.filtering.narrowing import ItemKind, Narrowing, narrowing
from recollect.memory.values.filtering.reading import read_filter
from recollect.memory.values.further_message import FurtherMessage
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message
from tests.contracts.random_filters import BEGIN, KEYS, RandomFilters
from tests.contracts.store.samples import answer, asked, fact, indexed

Keyed = Callable[[FilterKeys], AbstractAsyncContextManager[Store]]
"""Opens the same documents each time, with terms of these keys; each test class has a fixture `keyed` of this type."""
ADA = Scope("ada")
EVERY = {"or": [{"k": {"ne": "zebra"}}, {"k": "zebra"}]}


async def say(store: Store, number: int, draw: RandomFilters, thread_id: str = "t1") -> list[Message]:
    """Store a turn that search may find, with random metadata."""
    drawn = asked(f"turn{number}", thread_id=thread_id)
    drawn = replace(drawn, name=draw.name(), metadata=draw.metadata(), created_at=draw.time())
    message = await store.conversations.accept(drawn)
    reply = replace(
        answer(message), metadata=draw.metadata(), created_at=message.created_at + timedelta(milliseconds=1)
    )
    assert await store.conversations.commit(reply, result={}, update=indexed())
    return [message, reply]


async def meaning(store: Store, asked: Filter, kind: ItemKind) -> Narrowing:
    return await KnownTerms(store.filter_terms, "ada", KEYS).meant(asked, kind)


async def described(store: Store, meant: Narrowing) -> tuple[set[str], set[str], set[str]]:
    """Return what the store finds for each of the three conditions."""
    found = [
        await store.timeline.described(ADA, limit=500, where=where)
        for where in (meant.surely, meant.perhaps, meant.between)
    ]
    surely, perhaps, between = ({message.id for message in messages} for messages in found)
    return surely, perhaps, between


class FilterTermsContract:
    filters = 150

    @pytest.fixture
    def keyed(self) -> Keyed:
        raise NotImplementedError

    async def test_messages_are_narrowed_as_filters_mean_it(self, keyed: Keyed):
        draw = RandomFilters(1)
        async with keyed(KEYS) as store:
            turns = [await say(store, number, draw, f"t{number % 3}") for number in range(25)]
            said = [message for turn in turns for message in turn]
            others = replace(asked("theirs", user_id="bob"), metadata={"k": "a", "i": 1})
            await store.conversations.accept(others)
            for _ in range(self.filters):
                wanted = read_filter(draw.filter())
                meant = await meaning(store, wanted, "episode")
                surely, perhaps, between = await described(store, meant)
                fulfilled = {message.id for message in said if wanted.fulfilled(message_item(message))}
                assert surely <= fulfilled <= perhaps, wanted
                assert between == perhaps - surely
                of_thread = await store.conversations.messages(Scope("ada", "t1"), limit=99, where=meant.perhaps)
                assert {message.id for message in of_thread} == {
                    message.id for message in said if message.id in perhaps and message.thread_id == "t1"
                }
                threads = await store.timeline.threads("ada", where=meant.surely)
                assert sorted(threads) == sorted({message.thread_id for message in said if message.id in surely})

    async def test_pages_by_time_are_narrowed(self, keyed: Keyed):
        draw, asked_for = RandomFilters(2), read_filter({"k": {"in": ["a", "b"]}, "role": "user"})
        async with keyed(KEYS) as store:
            said = [(await say(store, number, draw))[0] for number in range(40)]
            where = (await meaning(store, asked_for, "episode")).surely
            wanted = {message.id for message in said if asked_for.fulfilled(message_item(message))}
            period = Period(BEGIN - timedelta(days=1), BEGIN + timedelta(days=1))
            during = await store.timeline.during(ADA, period, limit=99, where=where)
            latest = await store.timeline.latest(ADA, limit=99, where=where)
            assert {message.id for message in during} == {message.id for message in latest} == wanted != set()
            paged, before = list[Message](), None
            while page := await store.timeline.described(ADA, limit=2, before=before, where=where):
                paged += page
                before = page[-1]
            assert [message.id for message in paged] == [message.id for message in latest]

    async def test_facts_and_documents_are_narrowed_too(self, keyed: Keyed):
        draw = RandomFilters(3)
        facts, documents = list[Fact](), list[Document]()
        async with keyed(KEYS) as store:
            for number in range(30):
                known = replace(fact(f"f{number}"), metadata=draw.metadata(), created_at=draw.time(), indexed=True)
                assert await store.facts.insert(known)
                facts.append(known)
                header = _document(number, draw)
                assert await store.documents.put(header, revision=0)
                documents.append(header)
            for _ in range(self.filters // 2):
                wanted = read_filter(draw.filter())
                fits = {known.id for known in facts if wanted.fulfilled(fact_item(known))}
                meant = await meaning(store, wanted, "fact")
                assert await _ids(store, meant.surely) <= fits <= await _ids(store, meant.perhaps)
                fits = {header.id for header in documents if wanted.fulfilled(document_item(header))}
                meant = await meaning(store, wanted, "document")
                surely = await store.documents.page("ada", limit=99, where=meant.surely)
                perhaps = await store.documents.page("ada", limit=99, where=meant.perhaps)
                assert {one.id for one in surely} <= fits <= {one.id for one in perhaps}

    async def test_terms_follow_what_is_written(self, keyed: Keyed):
        where = narrowing(read_filter({"k": "a"}), KEYS, "fact").stored.surely
        async with keyed(KEYS) as store:
            known = replace(fact("f1"), metadata={"k": "a"}, indexed=True)
            assert await store.facts.insert(known)
            assert await _ids(store, where) == {"f1"}
            edited = replace(known, metadata={"k": "b"}, revision=2)
            assert await store.facts.replace(edited, revision=1)
            assert await _ids(store, where) == set()
            assert await _terms(store) == {"b"}
            assert await store.facts.replace(replace(edited, metadata={}, revision=3), revision=2)
            assert await _terms(store) == set()
            message, reply = await say(store, 1, RandomFilters(4))
            turn = await store.conversations.turn(user_id="ada", turn_id=message.turn_id)
            assert turn is not None
            again = replace(reply, metadata={"k": "again"})
            assert await store.conversations.recommit(turn, again, result={}, update=indexed())
            assert "again" in await _terms(store)
            assert await store.conversations.remove(user_id="ada", turn_ids=[message.turn_id]) == 2
            assert await _terms(store) == set()

    async def test_terms_in_a_range_are_listed_for_one_user(self, keyed: Keyed):
        low, high = "", "\U0010ffff"
        async with keyed(KEYS) as store:
            for user_id, value in (("ada", "x"), ("ada", "y"), ("ada", "x"), ("bob", "z")):
                number = len(await store.facts.living(Scope(user_id), at=BEGIN, limit=99))
                await store.facts.insert(replace(fact(f"{value}{number}", user_id=user_id), metadata={"k": value}))
            assert {term[-1] for term in await store.filter_terms.between("ada", low, high, limit=9)} == {"x", "y"}
            assert len(await store.filter_terms.between("ada", low, high, limit=1)) == 1
            (theirs,) = await store.filter_terms.between("bob", low, high, limit=9)
            assert await store.filter_terms.between("bob", theirs, theirs, limit=9) == []
            assert await store.filter_terms.between("bob", theirs, f"{theirs}\x01", limit=9) == [theirs]

    async def test_other_keys_are_filled_in_and_items_count_as_unmade_until_then(self, keyed: Keyed):
        draw = RandomFilters(5)
        async with keyed(NO_KEYS) as store:
            said = [await say(store, number, draw) for number in range(6)]
            await store.facts.insert(replace(fact("f1"), metadata={"k": "a"}, indexed=True))
            await store.documents.put(_document(1, draw), revision=0)
        messages = [message for turn in said for message in turn]
        wanted = read_filter(EVERY)
        fits = {message.id for message in messages if wanted.fulfilled(message_item(message))}
        async with keyed(KEYS) as store:
            meant = await meaning(store, wanted, "episode")
            assert await described(store, meant) == (set(), {one.id for one in messages}, {one.id for one in messages})
            assert len(await store.timeline.latest(ADA, limit=99, where=without(MADE))) == 12
            assert await store.filter_terms.fill("ada", limit=5) > 0
            await say(store, 99, draw)
            while await store.filter_terms.fill("ada", limit=5):
                pass
            assert await store.timeline.latest(ADA, limit=99, where=without(MADE)) == []
            meant = await meaning(store, wanted, "episode")
            surely, perhaps, _ = await described(store, meant)
            new = {message.id for message in messages}
            assert surely & new <= fits <= perhaps & new
            assert await store.filter_terms.fill("bob", limit=5) == 0
        async with keyed(read_filter_keys("u:keyword")) as store:
            while await store.filter_terms.fill("ada", limit=100):
                pass
            left = await store.filter_terms.between("ada", "", "\U0010ffff", limit=999)
            (slot,) = (key.slot for key in read_filter_keys("u:keyword").keys)
            assert {term.split(":")[0] for term in left} == {slot}

    async def test_a_turn_of_several_speakers_is_always_looked_at(self, keyed: Keyed):
        async with keyed(KEYS) as store:
            further = FurtherMessage("assistant", "I think so.", BEGIN, name="critic", metadata={"k": "a"})
            message = await store.conversations.accept(replace(asked(), further=(further,), metadata={"k": "b"}))
            assert await store.conversations.commit(answer(message), result={}, update=indexed())
            meant = narrowing(read_filter({"k": "a"}), KEYS, "episode").stored
            surely, perhaps, _ = await described(store, meant)
            assert (surely, message.id in perhaps) == (set(), True)
            assert await store.filter_terms.fill("ada", limit=9) == 0

    async def test_the_record_is_replaced_only_where_it_is_the_seen_one(self, keyed: Keyed):
        async with keyed(KEYS) as store:
            terms, begun = store.filter_terms, Filling("digest", "model/8")
            assert await terms.filling() is None
            assert not await terms.record(replace(begun, is_done=True), seen=begun)
            assert sorted(await asyncio.gather(*(terms.record(begun, seen=None) for _ in range(5))))[-2:] == [
                False,
                True,
            ]
            assert await terms.record(replace(begun, place="ad"), seen=begun)
            assert await terms.filling() == Filling("digest", "model/8", "ad")


def _document(number: int, draw: RandomFilters) -> Document:
    at = draw.time()
    return Document(f"d{number}", "ada", "Title", "text", f"hash{number}", at, at, metadata=draw.metadata(), revision=1)


async def _ids(store: Store, where: Narrow) -> set[str]:
    return {one.id async for page in store.facts.indexed(user_id="ada", where=where) for one in page}


async def _terms(store: Store) -> set[str]:
    """Return the texts that the user's terms hold."""
    found = await store.filter_terms.between("ada", "", "\U0010ffff", limit=999)
    return {term.split(":", 2)[2] for term in found if ":keyword:" in term}
