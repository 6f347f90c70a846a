"""Updates that give way to the turns of their user, over a real store with scripted steps."""

import asyncio

from recollect.memory.ports.store import Store
from recollect.memory.updates.right_of_way import (
    LEAST_ANSWER_SECONDS,
    LINGER_SECONDS,
    LONGEST_SECONDS,
    RightOfWay,
)
from recollect.memory.updates.user_work import MOST_YIELDING
from recollect.memory.values.update import owed
from tests.contracts.store.samples import finish
from tests.domain.support.updating import Scripted, eventually, updater


async def has_begun(facts: Scripted, *, within: float) -> bool:
    """Tell whether the first step begins within so many seconds."""
    try:
        await eventually(lambda: bool(facts.started), within)
    except TimeoutError:
        return False
    return True


async def test_an_update_begins_when_the_users_turn_asks_its_model(store: Store) -> None:
    await finish(store, "turn1", update=owed())
    facts = Scripted()
    async with updater(store, facts=facts) as works:
        works.way.answered(1.0)
        passage = works.way.passage("ada")
        with passage.working():
            works.notify("ada")
            assert not await has_begun(facts, within=0.2)
            with passage.resting():
                assert await has_begun(facts, within=0.5)


async def test_an_update_waits_no_longer_than_its_bound(store: Store) -> None:
    await finish(store, "turn1", update=owed())
    facts = Scripted()
    async with updater(store, facts=facts) as works:
        works.way.answered(1.0)
        with works.way.passage("ada").working():
            works.notify("ada")
            assert not await has_begun(facts, within=LONGEST_SECONDS / 2)
            assert await has_begun(facts, within=LONGEST_SECONDS)
            await eventually(lambda: facts.done == ["turn1"], 0.5)


async def test_a_turn_holds_up_its_own_users_updates_alone(store: Store) -> None:
    await finish(store, "turn1", user_id="bob", update=owed())
    facts = Scripted()
    async with updater(store, facts=facts) as works:
        works.way.answered(1.0)
        with works.way.passage("ada").working():
            works.notify("bob")
            assert await has_begun(facts, within=0.5)


async def test_whoever_waits_for_an_update_lets_it_go_on(store: Store) -> None:
    await finish(store, "turn1", update=owed())
    async with updater(store) as works:
        works.way.answered(1.0)
        with works.way.passage("ada").working():
            works.notify("ada")
            await asyncio.sleep(0.05)
            ended = await asyncio.wait_for(works.wait_ended(user_id="ada", turn_id="turn1", seconds=9), 0.5)
            assert ended is not None
            assert ended.status == "done"


async def test_a_user_with_a_backlog_gives_no_way(store: Store) -> None:
    for number in range(MOST_YIELDING + 1):
        await finish(store, f"turn{number}", update=owed())
    facts = Scripted()
    async with updater(store, facts=facts) as works:
        works.way.answered(1.0)
        passage = works.way.passage("ada")
        facts.gate.clear()
        works.notify("ada")
        await eventually(lambda: bool(facts.started))
        with passage.working():
            facts.gate.set()
            await eventually(lambda: len(facts.done) > 1, LONGEST_SECONDS / 2)


async def test_a_stop_waits_for_no_turn(store: Store) -> None:
    await finish(store, "turn1", update=owed())
    facts = Scripted()
    async with updater(store, facts=facts) as works:
        works.way.answered(1.0)
        with works.way.passage("ada").working():
            works.notify("ada")
            await asyncio.sleep(0.05)
            await asyncio.wait_for(works.drain(5), 0.5)
    assert facts.done == ["turn1"]


async def test_a_turn_lingers_after_its_reply_and_then_has_no_way() -> None:
    way = RightOfWay()
    way.answered(1.0)
    passage = way.passage("ada")
    with passage.working(), passage.resting():
        await asyncio.sleep(LEAST_ANSWER_SECONDS)
    began = asyncio.get_running_loop().time()
    await asyncio.wait_for(way.given("ada"), 0.5)
    assert asyncio.get_running_loop().time() - began >= LINGER_SECONDS * 0.9
    with passage.resting():  # the reply of a run that was given up meanwhile
        pass
    await asyncio.wait_for(way.given("ada"), 0.01)


async def test_a_turn_whose_model_answers_at_once_holds_nobody_up() -> None:
    way = RightOfWay()
    way.answered(1.0)
    with way.passage("ada").working():
        with way.passage("ada").resting():
            pass
        assert not way.is_worth_it
    await asyncio.wait_for(way.given("ada"), LINGER_SECONDS / 2)
    with way.passage("ada").working():
        await asyncio.wait_for(way.given("ada"), 0.01)
