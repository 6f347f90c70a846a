"""Superseding the last turns of a thread over real stores: what they taught goes, what the user said stays."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.memory.learning.turns.regenerating import Regenerating
from recollect.memory.learning.turns.superseding import Superseding
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import UpdatePending
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import owed
from tests.contracts.store.samples import LEASE, answer, asked
from tests.domain.support.handling import House, house, says

THREAD = Scope("ada", "t1")
BERGEN = Proposal("update", "city", "Bergen", "The user lives in Bergen.", "Bergen")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path) as opened:
        yield opened


def superseding(home: House, wait_seconds: float = 5) -> Superseding:
    regenerating = Regenerating(home.store, home.stores.index, home.clock, wait_seconds)
    return Superseding(home.store, home.stores.index, home.updater, regenerating)


async def test_what_the_turns_taught_is_taken_back_and_what_they_ended_holds_again(home: House) -> None:
    first = await home.turn("a", says("city", "Oslo"))
    second = await home.turn("b", BERGEN, says("pet", "dog"))
    await home.turn("c", says("name", "Ada"))
    assert await home.known() == {"city": "Bergen", "pet": "dog", "name": "Ada"}
    summarised = ThreadRecord("ada", "t1", summary="They met.", summary_by="model", summarised_to=6, revision=1)
    assert await home.store.threads.put(summarised, revision=0)
    for _ in range(2):  # what is done is left alone
        await superseding(home).supersede(THREAD, ["b", "c"])
    assert await home.known() == {"city": "Oslo"}
    assert await home.stored("a") == first
    assert await home.stored("b") == Turn(second.message)
    assert [exchange.user.turn_id for exchange in await home.store.conversations.recent(THREAD, limit=9)] == ["a"]
    record = await home.store.threads.record(THREAD)
    assert record is not None
    assert (record.summary, record.summarised_to) == (None, 0)
    indexed = [one async for batch in home.store.conversations.indexed_messages(user_id="ada") for one in batch]
    assert {message.turn_id for message in indexed} == {"a"}


async def test_a_turn_that_was_not_learned_from_yet_never_is(home: House) -> None:
    message = await home.store.conversations.accept(asked())
    assert await home.store.conversations.commit(answer(message), result={"memory": {"hits": []}}, update=owed())
    home.extractor.lessons[message.content] = [says("city", "Oslo")]
    await superseding(home).supersede(THREAD, ["turn1"])
    home.updater.notify("ada")
    assert home.extractor.requests == []
    assert await home.stored("turn1") == Turn(message)


async def test_a_turn_that_a_worker_is_at_stays_as_it_is(home: House) -> None:
    message = await home.store.conversations.accept(asked())
    assert await home.store.conversations.commit(answer(message), result={"memory": {"hits": []}}, update=owed())
    turn = await home.stored("turn1")
    claim = await home.store.updates.claim("ada", owner="other", lease=LEASE, now=home.clock())
    assert claim is not None
    with pytest.raises(UpdatePending):
        await superseding(home, wait_seconds=0.1).supersede(THREAD, ["turn1"])
    assert await home.stored("turn1") == replace(turn)
