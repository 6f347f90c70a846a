"""Tombstones, receipts and the scan."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from recollect.memory.ports.erasures import SECRET_BYTES, Erasure, Tombstone, keyed_hash, subject_of
from recollect.memory.ports.store import Store
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NOW, asked, fact, finish

ADA, T1 = Scope("ada"), Scope("ada", "t1")
BEGUN = Erasure("e1", "hash", "key1", NOW, NOW, ADA, {"facts": 2}, {"facts": 0, "index": None})


def later(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


class ErasuresContract:
    async def test_the_key_of_the_hashes_is_made_once(self, backend: Backend):
        async with backend() as store:
            secrets = set(await asyncio.gather(*(store.erasures.secret() for _ in range(8))))
        async with backend() as store:
            assert {await store.erasures.secret()} == secrets
        (secret,) = secrets
        assert len(secret) == SECRET_BYTES
        assert len(keyed_hash(secret, "ada")) == len(keyed_hash(secret, "ada" * 100)), (
            "a hash carries no text of the id"
        )
        subjects = {subject_of(secret, scope) for scope in (ADA, T1, Scope("ada", "t2"), Scope("ada2"))}
        assert len(subjects) == 4
        assert subject_of(secret, T1).startswith(f"{subject_of(secret, ADA)}/")
        assert keyed_hash(b"0" * 32, "ada") != keyed_hash(secret, "ada")

    async def test_a_fence_rises_with_each_erasure_and_with_its_end(self, store: Store):
        erasures = store.erasures
        assert await erasures.tombstones(["user"]) == {}
        assert await erasures.block("user", "one", at=NOW) == Tombstone("user", 1, NOW, frozenset({"one"}))
        both = await erasures.block("user", "two", at=NOW + later(1))
        assert both == Tombstone("user", 2, NOW + later(1), frozenset({"one", "two"}))
        assert await erasures.block("user", "two", at=NOW) == Tombstone("user", 3, NOW, both.erasing)
        for _ in range(2):
            await erasures.unblock("user", "one", at=NOW + later(2))
        lifted = Tombstone("user", 4, NOW + later(2), frozenset({"two"}))
        assert await erasures.tombstones(["other", "user"]) == {"user": lifted}
        await erasures.unblock("user", "two", at=NOW)
        await erasures.unblock("nobody", "two", at=NOW)
        assert await erasures.tombstones(["user", "nobody"]) == {"user": Tombstone("user", 5, NOW)}

    async def test_raises_are_counted_and_raised_at_once_all_count(self, store: Store):
        erasures = store.erasures
        before = await erasures.epoch()
        await asyncio.gather(*(erasures.block("user", f"e{number}", at=NOW) for number in range(8)))
        assert (await erasures.tombstones(["user"]))["user"].epoch == 8
        assert await erasures.epoch() >= before + 8

    async def test_tombstones_come_in_pages_from_a_time_on(self, store: Store):
        for number in range(5):
            await store.erasures.block(f"user{number}", "e", at=NOW + later(number))
        first = await store.erasures.tombstones_since(NOW + later(1), limit=3)
        assert [found.subject for found in first] == ["user1", "user2", "user3"]
        rest = await store.erasures.tombstones_since(NOW + later(1), after="user3", limit=3)
        assert [found.subject for found in rest] == ["user4"]
        assert await store.erasures.tombstones_since(NOW + later(5)) == []

    async def test_a_user_is_told_by_a_threads_tombstone_too(self, store: Store):
        secret = await store.erasures.secret()
        hashes = {user: keyed_hash(secret, user) for user in ("ada", "bob", "cleo")}
        for scope in (ADA, Scope("bob", "t1")):
            await store.erasures.block(subject_of(secret, scope), "e", at=NOW)
        assert await store.erasures.erased(list(hashes.values())) == {hashes["ada"], hashes["bob"]}
        assert await store.erasures.erased([hashes["cleo"]]) == set()

    async def test_an_erasure_is_kept_until_it_is_a_receipt(self, store: Store):
        erasures = store.erasures
        assert await erasures.erasure("e1") is None
        await erasures.put(BEGUN)
        of_thread = replace(BEGUN, id="e2", scope=T1, touched_at=NOW - later(1))
        await erasures.put(of_thread)
        assert await erasures.erasure("e1") == BEGUN
        assert await erasures.unfinished(limit=9) == [of_thread, BEGUN]
        assert await erasures.unfinished(limit=1) == [of_thread]
        emptied = replace(BEGUN, scope=None, counts={"facts": 3}, remaining={"facts": 0})
        await erasures.put(emptied)
        assert emptied in await erasures.unfinished(limit=9)
        receipt = replace(emptied, is_done=True)
        await erasures.put(receipt)
        assert await erasures.erasure("e1") == receipt
        assert await erasures.unfinished(limit=9) == [of_thread]

    async def test_a_scan_counts_what_is_of_the_scope_and_nothing_else(self, store: Store):
        await finish(store, "one")
        await finish(store, "two", thread_id="t2")
        await store.conversations.accept(asked("open"))
        await store.conversations.accept(replace(asked("other"), user_id="ad"))
        for made in (fact("f1"), fact("f2", scope="thread", thread_id="t1"), fact("f3", user_id="ada2")):
            assert await store.facts.insert(made)
        assert await store.threads.put(ThreadRecord("ada", "t2", revision=1), revision=0)
        holders = ("conversations", "facts", "threads", "documents", "keys", "terminal")
        counted = {scope: [await store.erasures.count(holder, scope) for holder in holders] for scope in (ADA, T1)}
        assert counted == {ADA: [5, 2, 1, 0, 0, 0], T1: [3, 1, 0, 0, 0, 0]}
        assert await store.erasures.count("conversations", Scope("nobody")) == 0

    async def test_work_on_a_user_is_deleted_and_claimed_anew(self, store: Store):
        await finish(store, "one")
        assert await store.updates.claim("ada", owner="me", lease=later(15), now=NOW) is not None
        async with store.queue.turn(T1, wait_seconds=1):
            deleted = await store.erasures.delete_work(ADA)
            assert await store.erasures.count("work", ADA) == 0
        assert deleted == (2 if store.erasures.is_shared else 0)
        async with store.queue.turn(T1, wait_seconds=1):
            assert await store.erasures.delete_work(T1) == (1 if store.erasures.is_shared else 0)
        assert await store.updates.claim("ada", owner="me", lease=later(15), now=NOW) is not None

    async def test_scrubbing_loses_nothing(self, store: Store):
        exchange = await finish(store, "one")
        await finish(store, "two", user_id="bob")
        await store.conversations.delete(Scope("bob"))
        await store.erasures.scrub()
        assert await store.conversations.recent(T1, limit=9) == [exchange]
