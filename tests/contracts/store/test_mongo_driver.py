"""The driver's lock survives what callers do while no server answers."""

# pyright: reportPrivateUsage=false
import asyncio

from pymongo import lock

from recollect.memory.stores.mongo import connection


async def test_a_call_that_is_cancelled_twice_leaves_the_lock_free() -> None:
    assert connection.MongoConnection, "its import mends how the driver waits"
    held = lock._async_create_lock()
    changed = lock._async_create_condition(held)

    async def wait() -> None:
        async with held:
            await lock._async_cond_wait(changed, 10)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    async with asyncio.timeout(5), held:
        waiting.cancel()
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(5), held:
        assert waiting.cancelled()
