"""Facts that wait for a person: approved, rejected, and cut off in between, over real stores."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.learning.reconciliation import Review
from recollect.memory.ports.facts import FactFilter
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import FactConflict
from tests.domain.support.handling import House, house, says
from tests.domain.support.learner import Dying, Killed, With


@pytest.fixture
async def reviewed(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path, review=Review("all")) as opened:
        yield opened


async def test_a_proposed_fact_waits_until_it_is_approved(reviewed: House) -> None:
    home = reviewed
    old = await home.facts.put("ada", "city", {"value": "Oslo", "pinned": False})
    await home.turn("a", says("name", "Ada"), says("dog", "Rex"))
    assert await home.known() == {"city": "Oslo"}
    waiting = await home.facts.page("ada", FactFilter(home.clock(), status="proposed"), limit=10)
    name, dog = sorted(waiting.items, key=lambda fact: fact.key or "", reverse=True)
    assert (await home.facts.approve("ada", name.id)).status == "active"
    assert (await home.facts.reject("ada", dog.id)).status == "rejected"
    assert await home.known() == {"city": "Oslo", "name": "Ada"}
    for again in (home.facts.approve, home.facts.reject):
        for fact in (name, dog, old):
            with pytest.raises(FactConflict):
                await again("ada", fact.id)
    assert [version["ended"] and version["ended"]["by"] for version in await home.facts.history("ada", name.id)] == [
        "review",
        None,
    ]
    await home.check_index()


async def test_an_approval_ends_what_lives_under_the_key_by_then(reviewed: House) -> None:
    home = reviewed
    await home.turn("a", says("city", "Oslo"))
    (proposed,) = (await home.facts.page("ada", FactFilter(home.clock(), status="proposed"), limit=10)).items
    await home.facts.put("ada", "city", {"value": "Bergen"})
    approved = await home.facts.approve("ada", proposed.id)
    assert await home.known() == {"city": "Oslo"}
    versions = await home.facts.history("ada", approved.id)
    assert {
        (version["value"], version["status"], version["ended"] and version["ended"]["by"]) for version in versions
    } == {
        ("Oslo", "proposed", "review"),
        ("Oslo", "active", None),
        ("Bergen", "ended", "review"),
    }
    await home.check_index()


async def test_an_approved_deletion_ends_its_target(reviewed: House) -> None:
    home = reviewed
    await home.turn("a", says("city", "Oslo"))
    (fact,) = (await home.facts.page("ada", FactFilter(home.clock(), status="proposed"), limit=10)).items
    await home.facts.approve("ada", fact.id)
    await home.turn("b", Proposal("delete", key="city", evidence="Forget Oslo"))
    (deletion,) = (await home.facts.page("ada", FactFilter(home.clock(), status="proposed"), limit=10)).items
    assert deletion.proposes == "delete"
    assert await home.known() == {"city": "Oslo"}
    await home.facts.approve("ada", deletion.id)
    assert await home.known() == {}
    await home.check_index()


async def test_a_cut_off_approval_is_completed_by_the_same_call(tmp_path: Path) -> None:
    dying = Dying(None, 1_000, frozenset({"replace"}))

    def cutting(documents: Any) -> Any:
        dying.part = documents.facts
        return With(documents, {"facts": dying})

    async with house(tmp_path, documents=cutting, review=Review("all")) as home:
        await home.facts.put("ada", "city", {"value": "Bergen"})
        await home.facts.forget("ada", (await home.facts.put("ada", "pet", {"value": "cat"})).id)
        await home.turn("a", says("pet", "dog"))
        await home.facts.put("ada", "pet", {"value": "fish"})
        (proposed,) = (await home.facts.page("ada", FactFilter(home.clock(), status="proposed"), limit=10)).items
        dying.left = 1
        with pytest.raises(Killed):
            await home.facts.approve("ada", proposed.id)
        dying.left = 1_000
        assert (await home.facts.approve("ada", proposed.id)).status == "active"
        assert await home.known() == {"city": "Bergen", "pet": "dog"}
        await home.check_index()
