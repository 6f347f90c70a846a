"""Learning from texts that are no turns, over real stores: cut off anywhere, and side by side with turns."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.erasure.fences import Fences
from recollect.memory.learning.plan import Plan
from recollect.memory.learning.text_learning import Lesson, TextLearning
from recollect.memory.updates.retention import Retention
from recollect.memory.updates.user_claim import user_claim
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import InvalidRequest, UpdatePending, UserErased
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from tests.contracts.store.samples import LEASE
from tests.domain.support.handling import House, house, says
from tests.domain.support.learner import Dying, Killed, dying_facts

ADA = Scope("ada")
TEXT = "Rome, nurse, green"
BERGEN = Proposal("update", "city", "Bergen", "The user lives in Bergen.", "Bergen")


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path) as opened:
        yield opened


def learning(home: House, *, facts: Any = None, wait_seconds: float = 5, fences: Fences | None = None) -> TextLearning:
    """Learning over the home's stores; `facts` stand in for theirs."""
    documents = home.store if facts is None else dying_facts(home.store, facts)
    return TextLearning(
        documents,
        home.turns.learning.plan_text,
        home.stores.points,
        home.updater,
        Retention(documents, home.stores.index, MemoryConfig(), home.clock),
        fences or Fences(home.store.erasures),
        home.clock,
        wait_seconds,
    )


async def learn(home: House, text: str, *proposals: Proposal, scope: Scope = ADA, **more: Any) -> Lesson:
    home.extractor.lessons[text] = proposals
    return await learning(home, **more).learn(scope, text)


async def test_a_kill_at_any_write_is_completed_by_the_same_text(tmp_path: Path) -> None:
    told = (says("job", "nurse"), says("city", "Rome"), says("shade", "green"))
    async with house(tmp_path / "whole") as home:
        await home.turn("a", says("city", "Oslo"), says("pet", "dog"))
        counting = Dying(home.store.facts, 1_000)
        await learn(home, TEXT, *told, facts=counting)
        writes = 1_000 - counting.left
        assert writes == 4
    for cut in range(writes):
        async with house(tmp_path / str(cut)) as home:
            await home.turn("a", says("city", "Oslo"), says("pet", "dog"))
            with pytest.raises(Killed):
                await learn(home, TEXT, *told, facts=Dying(home.store.facts, cut))
            home.clock.jump(LEASE)
            await learn(home, TEXT, *told)
            assert await home.known() == {"city": "Rome", "pet": "dog", "job": "nurse", "shade": "green"}
            assert len(await home.living()) == 4
            (old,) = [one for one in await home.facts.history("ada", (await home.one("city")).id) if one["ended"]]
            assert (old["value"], old["ended"]["by"]) == ("Oslo", "turn")
            await home.check_index()


async def test_a_text_is_completed_by_any_later_one(home: House) -> None:
    await home.turn("a", says("city", "Oslo"))
    with pytest.raises(Killed):
        await learn(home, TEXT, says("city", "Rome"), facts=Dying(home.store.facts, 1))
    assert len(await home.living()) == 2
    await learn(home, "Something else.")
    assert [fact.value for fact in await home.living()] == ["Rome"]


async def test_what_a_person_pinned_since_is_not_ended(home: House) -> None:
    await home.turn("a", says("city", "Oslo"))
    with pytest.raises(Killed):
        await learn(home, TEXT, says("city", "Rome"), facts=Dying(home.store.facts, 1))
    (oslo,) = [fact for fact in await home.living() if fact.value == "Oslo"]
    assert await home.store.facts.replace(oslo.revised(at=home.clock(), pinned=True), revision=oslo.revision)
    await learn(home, "Something else.")
    assert "Oslo" in {fact.value for fact in await home.living()}


async def test_it_comes_in_turn_with_whoever_holds_the_users_claim(home: House) -> None:
    async with user_claim(home.store.updates, "ada", clock=home.clock, wait_seconds=1):
        with pytest.raises(UpdatePending):
            await learn(home, TEXT, says("job", "nurse"), wait_seconds=0.15)
        assert await home.known() == {}
        waiting = asyncio.create_task(learn(home, TEXT, says("job", "nurse")))
        await asyncio.sleep(0)
        assert home.extractor.requests == []
    await waiting
    assert await home.known() == {"job": "nurse"}
    await home.turn("a", says("city", "Oslo"))
    assert await home.known() == {"job": "nurse", "city": "Oslo"}


async def test_a_claim_that_was_lost_writes_nothing(home: House) -> None:
    taken: list[str] = []

    async def plan_text(scope: Scope, text: str, lesson_id: str, agent_id: str | None) -> tuple[Plan, str]:
        """Plan while another process takes the user over."""
        home.clock.jump(2 * LEASE)
        claim = await home.store.updates.claim("ada", owner="other", lease=LEASE, now=home.clock())
        assert claim is not None
        taken.append(claim.owner)
        return await home.turns.learning.plan_text(scope, text, lesson_id)

    home.extractor.lessons[TEXT] = (says("job", "nurse"),)
    works = learning(home)
    late = TextLearning(
        works.store,
        plan_text,
        works.points,
        works.updater,
        works.retention,
        works.fences,
        works.clock,
        works.wait_seconds,
    )
    with pytest.raises(UpdatePending):
        await late.learn(ADA, TEXT)
    assert taken == ["other"]
    assert await home.known() == {}


async def test_an_erased_user_is_not_brought_back(home: House) -> None:
    fences = Fences(home.store.erasures)

    async def plan_text(scope: Scope, text: str, lesson_id: str, agent_id: str | None) -> tuple[Plan, str]:
        """Plan while the user is erased."""
        fences.block(ADA, "erasure")
        fences.unblock(ADA, "erasure")
        return await home.turns.learning.plan_text(scope, text, lesson_id)

    home.extractor.lessons[TEXT] = (says("job", "nurse"),)
    works = learning(home, fences=fences)
    late = TextLearning(
        works.store,
        plan_text,
        works.points,
        works.updater,
        works.retention,
        fences,
        works.clock,
        works.wait_seconds,
    )
    with pytest.raises(UserErased):
        await late.learn(ADA, TEXT)
    assert await home.known() == {}
    await learn(home, TEXT, says("job", "nurse"), fences=fences)
    assert await home.known() == {"job": "nurse"}


@pytest.mark.parametrize("text", ["", "x" * 200_001, "a\x00b", "\ud800"])
async def test_a_text_that_no_store_can_hold_is_refused(home: House, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await learning(home).learn(ADA, text)
    assert [problem.field for problem in caught.value.problems] == ["content"]
