import asyncio
import hashlib
from dataclasses import dataclass, field

import pytest

from recollect.memory.ports.key_ring import CACHE_SECONDS, MOST_CACHED, KeyRing
from recollect.memory.ports.keys import Key, Keys, is_key_id, new_key, read_key, read_role
from recollect.memory.ports.store import Store
from recollect.memory.values.errors import InvalidRequest, NotFound
from recollect.memory.values.times import utc_now
from tests.contracts.store.samples import NOW


@dataclass
class Watched:
    """The keys of a store; counts how often one is looked up, and can hold a look-up up until it is told to go on."""

    keys: Keys
    lookups: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    hold: asyncio.Event | None = None

    async def insert(self, key: Key) -> bool:
        return await self.keys.insert(key)

    async def key(self, key_id: str) -> Key | None:
        self.lookups += 1
        self.begun.set()
        found = await self.keys.key(key_id)
        if self.hold is not None:
            await self.hold.wait()
        return found

    async def page(self, *, limit: int, after: object = None) -> list[Key]:
        return await self.keys.page(limit=limit)

    async def remove(self, key_id: str) -> bool:
        return await self.keys.remove(key_id)

    async def count(self, user_id: str) -> int:
        return await self.keys.count(user_id)

    async def delete(self, user_id: str) -> int:
        return await self.keys.delete(user_id)


@dataclass
class Seconds:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watched(store: Store) -> Watched:
    return Watched(store.keys)


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def ring(watched: Watched, seconds: Seconds) -> KeyRing:
    return KeyRing(watched, utc_now, monotonic=seconds)


@pytest.mark.parametrize(
    ("said", "role", "user_id"),
    [
        ("service", "service", None),
        ("admin", "admin", None),
        ("user:ada", "user", "ada"),
        ("user:a:b@c", "user", "a:b@c"),
    ],
)
def test_a_role_is_what_people_write(said: str, role: str, user_id: str | None) -> None:
    assert read_role(said) == (role, user_id)
    key, _ = new_key(said, name=None, now=NOW)
    assert (key.role, key.user_id, key.said_role) == (role, user_id, said)


@pytest.mark.parametrize("said", ["", "root", "Admin", "user", "user:", "user:*", "user:..", "user:a b", "service:ada"])
def test_any_other_role_is_refused(said: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_role(said)
    assert [problem.field for problem in raised.value.problems] == ["role"]


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "\x1b[31m", "\ud800", "a\x00"])
def test_a_name_is_a_line_that_a_terminal_can_show(name: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        new_key("admin", name=name, now=NOW)
    assert [problem.field for problem in raised.value.problems] == ["name"]


def test_of_a_key_only_a_hash_is_kept() -> None:
    key, text = new_key("admin", name="Zürich", now=NOW)
    shown = read_key(text)
    assert shown is not None
    assert (shown.id, shown.opens(key)) == (key.id, True)
    assert key.digest == hashlib.sha256(shown.secret.encode()).hexdigest()
    assert len(shown.secret) == 43, "256 bits"
    assert shown.secret not in repr(key)
    assert key.digest not in str(key.as_json())
    assert not shown.opens(None)
    other, _ = new_key("admin", name=None, now=NOW)
    assert not shown.opens(other)


def test_what_is_no_key_is_not_looked_up() -> None:
    _, text = new_key("admin", name=None, now=NOW)
    for broken in ("", text[:-1], text + "x", text.upper(), f" {text}", text.replace("rk_", "sk_"), f"{text}\n", "ä"):
        assert read_key(broken) is None
    assert is_key_id("0123456789abcdef")
    assert not any(map(is_key_id, ["", "0123456789abcdeF", "0" * 15, "0" * 17, "0123456789abcdef\n"]))


async def test_a_ring_finds_the_key_that_it_made(ring: KeyRing) -> None:
    key, text = await ring.create("user:ada", name="laptop")
    assert await ring.find(text) == key
    assert await ring.page(limit=9) == [key]
    other = text[:-1] + ("A" if text[-1] != "A" else "B")
    for wrong in (other, "rk_0000000000000000_" + "A" * 43, "", "Bearer"):
        assert await ring.find(wrong) is None


async def test_a_key_is_looked_up_once_in_a_few_seconds(ring: KeyRing, watched: Watched, seconds: Seconds) -> None:
    _, text = await ring.create("admin")
    for _ in range(5):
        assert await ring.find(text)
    assert watched.lookups == 1
    seconds.now += CACHE_SECONDS
    assert await ring.find(text)
    assert watched.lookups == 2


async def test_a_revoked_key_opens_nothing_from_then_on(ring: KeyRing, watched: Watched) -> None:
    key, text = await ring.create("admin")
    assert await ring.find(text)
    await ring.revoke(key.id)
    assert await ring.find(text) is None
    with pytest.raises(NotFound):
        await ring.revoke(key.id)
    assert watched.lookups == 2


async def test_a_key_that_another_process_revoked_opens_for_seconds_only(
    ring: KeyRing, store: Store, seconds: Seconds
) -> None:
    key, text = await ring.create("admin")
    assert await ring.find(text)
    assert await store.keys.remove(key.id)
    seconds.now += CACHE_SECONDS - 0.1
    assert await ring.find(text)
    seconds.now += 0.1
    assert await ring.find(text) is None


async def test_a_key_that_is_revoked_while_it_is_looked_up_is_not_kept(ring: KeyRing, watched: Watched) -> None:
    key, text = await ring.create("admin")
    watched.hold = asyncio.Event()
    looking = asyncio.create_task(ring.find(text))
    await watched.begun.wait()
    await ring.revoke(key.id)
    watched.hold.set()
    await looking
    assert await ring.find(text) is None


async def test_a_users_keys_go_at_once(ring: KeyRing) -> None:
    texts = [(await ring.create(role))[1] for role in ("user:ada", "user:ada", "user:bob", "service")]
    for text in texts:
        assert await ring.find(text)
    assert await ring.count("ada") == 2
    assert await ring.delete("ada") == 2
    assert [await ring.find(text) is not None for text in texts] == [False, False, True, True]
    assert await ring.count("ada") == 0


async def test_the_cache_is_bounded(ring: KeyRing, watched: Watched) -> None:
    texts = [(await ring.create("service"))[1] for _ in range(3)]
    assert await ring.find(texts[0])
    made = [new_key("service", name=None, now=NOW) for _ in range(MOST_CACHED)]
    for key, text in made:
        await watched.insert(key)
        assert await ring.find(text)
    before = watched.lookups
    assert await ring.find(texts[0])
    assert watched.lookups == before + 1, "the oldest one went"
    assert await ring.find(made[-1][1])
    assert watched.lookups == before + 1
