"""Fences: who is too late, who is waited for, and what is taken back, in one process and between two."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from recollect.memory.erasure.fences import Fences
from recollect.memory.ports.store import Store
from recollect.memory.stores.sqlite import open_sqlite_store
from recollect.memory.values.errors import StoreUnavailable, UserErased
from recollect.memory.values.scope import Scope
from recollect.memory.values.times import utc_now

ADA, T1, T2 = Scope("ada"), Scope("ada", "t1"), Scope("ada", "t2")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_sqlite_store(tmp_path / "documents.db") as opened:
        yield opened


@pytest.fixture
def fences(store: Store) -> Fences:
    return Fences(store.erasures)


async def erase(fences: Fences, scope: Scope = ADA) -> None:
    """Do with fences all that an erasure does."""
    await fences.fence_out(scope, "e1", at=utc_now())
    assert await fences.quiet(scope)
    await fences.erasures.unblock(await fences.subject(scope), "e1", at=utc_now())
    fences.unblock(scope, "e1")


async def test_who_began_before_an_erasure_is_refused_and_who_comes_later_is_not(fences: Fences) -> None:
    before = await fences.observe(ADA)
    await erase(fences)
    with pytest.raises(UserErased):
        async with before.writing():
            pytest.fail("nothing is written")
    with pytest.raises(UserErased):
        await before.check()
    async with fences.writing("ada"):
        pass


async def test_a_thread_is_fenced_alone_and_a_user_with_all_threads(fences: Fences) -> None:
    one, two, whole = [await fences.observe(scope) for scope in (T1, T2, ADA)]
    await erase(fences, T1)
    with pytest.raises(UserErased):
        await one.check()
    await two.check()
    await whole.check()
    again = await fences.observe(T1)
    await erase(fences)
    for fence in (two, whole, again):
        with pytest.raises(UserErased):
            await fence.check()


async def test_while_it_is_under_way_nobody_begins(fences: Fences) -> None:
    await fences.fence_out(ADA, "e1", at=utc_now())
    for scope in (ADA, T1):
        with pytest.raises(UserErased, match="being erased"):
            await fences.observe(scope)
    await fences.observe(Scope("bob"))


async def test_an_erasure_waits_for_who_is_inside(fences: Fences) -> None:
    steps = list[str]()
    inside = asyncio.Event()

    async def write() -> None:
        async with fences.writing("ada") as writing:
            writing.on_erased(lambda: asyncio.sleep(0, steps.append("taken back")))
            inside.set()
            await asyncio.sleep(0.1)
            steps.append("written")

    writer = asyncio.create_task(write())
    await inside.wait()
    await erase(fences)
    steps.append("erased")
    with pytest.raises(UserErased):
        await writer
    assert steps == ["written", "taken back", "erased"]


async def test_who_stays_inside_for_long_is_ended_and_raises_the_same(fences: Fences) -> None:
    taken_back = list[int]()
    inside = asyncio.Event()

    async def write() -> None:
        async with fences.writing("ada") as outer:
            outer.on_erased(lambda: asyncio.sleep(0, taken_back.append(1)))
            async with fences.writing("ada", "t1") as inner:
                inner.on_erased(lambda: asyncio.sleep(0, taken_back.append(2)))
                inside.set()
                await asyncio.sleep(3600)

    writer = asyncio.create_task(write())
    await inside.wait()
    async with asyncio.timeout(5):
        await erase(fences)
    with pytest.raises(UserErased):
        await writer
    assert writer.cancelling() == 0
    assert taken_back == [2, 1]


async def test_a_threads_erasure_ends_no_writer_of_the_user(fences: Fences) -> None:
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def write() -> str:
        async with fences.writing("ada"):
            inside.set()
            await go_on.wait()
        return "written"

    writer = asyncio.create_task(write())
    await inside.wait()
    await erase(fences, T1)
    go_on.set()
    assert await writer == "written"


async def test_a_cancelled_writer_is_cancelled_and_no_erasure_said_so(fences: Fences) -> None:
    inside = asyncio.Event()

    async def write() -> None:
        async with fences.writing("ada"):
            inside.set()
            await asyncio.sleep(3600)

    writer = asyncio.create_task(write())
    await inside.wait()
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer


async def test_what_fails_inside_fails_as_itself_unless_the_user_was_erased(fences: Fences) -> None:
    with pytest.raises(StoreUnavailable):
        async with fences.writing("ada"):
            raise StoreUnavailable
    fence = await fences.observe(ADA)
    taken_back = list[int]()

    async def write() -> None:
        async with fence.writing() as writing:
            writing.on_erased(lambda: asyncio.sleep(0, taken_back.append(1)))
            fences.block(ADA, "e1")
            raise StoreUnavailable

    with pytest.raises(UserErased):
        await write()
    assert taken_back == [1]


async def test_listeners_hear_whose_fence_is_raised(fences: Fences) -> None:
    heard = list[Scope]()
    fences.listeners.append(heard.append)
    await erase(fences, T1)
    await erase(fences)
    assert heard == [T1, ADA]
    assert await fences.erased({"ada", "bob"}) == {"ada"}
