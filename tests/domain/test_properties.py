"""Any order of turns, repeats, undo and edits leaves documents and index equal: the doctor finds nothing."""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import FactConflict, FactsChanged, UpdatePending
from recollect.memory.values.fact import Fact
from tests.domain.support.handling import House, house, says

EXAMPLES = 60
KEYS = ("city", "job", "pet")
VALUES = ("Oslo", "nurse", "Rex", "5 mg", "10 mg")

keys = st.sampled_from(KEYS)
values = st.sampled_from(VALUES)
threads = st.sampled_from(("t1", "t2"))
scopes = st.sampled_from(("user", "user", "thread"))
which = st.integers(0, 50)


def moved(key: str, value: str) -> Proposal:
    return Proposal("update", key, value, None, value)


def gone(key: str) -> Proposal:
    return Proposal("delete", key=key, evidence=f"forget the {key}")


def likes(value: str) -> Proposal:
    return Proposal("add", None, None, f"The user likes {value}.", value)


def still(key: str) -> Proposal:
    return Proposal("keep", key=key, evidence=key)


proposals = st.one_of(
    st.builds(says, keys, values, scope=scopes),
    st.builds(moved, keys, values),
    st.builds(gone, keys),
    st.builds(likes, values),
    st.builds(still, keys),
)
acts = st.one_of(
    st.tuples(st.just("turn"), threads, st.lists(proposals, max_size=4)),
    st.tuples(st.just("turn"), threads, st.lists(proposals, max_size=4)),
    st.tuples(st.just("repeat"), which),
    st.tuples(st.just("undo"), which, st.booleans()),
    st.tuples(st.just("learn"), which),
    st.tuples(st.just("put"), keys, values, scopes),
    st.tuples(st.just("patch"), which, values, st.booleans()),
    st.tuples(st.just("end"), which),
    st.tuples(st.just("forget"), which),
)


@dataclass
class Life:
    """One user's life: what was done is counted, so that every turn and fact can be named."""

    home: House
    turns: list[str] = field(default_factory=list[str])
    forgotten: list[str] = field(default_factory=list[str])

    async def act(self, act: Sequence[object]) -> None:
        """Do one act; what people are refused changes nothing."""
        name, *how = act
        with contextlib.suppress(FactConflict, FactsChanged, UpdatePending):
            await getattr(self, f"_{name}")(*how)

    async def _turn(self, thread: str, told: list[Proposal]) -> None:
        turn_id = f"turn{len(self.turns)}"
        await self.home.turn(turn_id, *told, thread=thread)
        self.turns.append(turn_id)

    async def _repeat(self, number: int) -> None:
        """Run the turn's step once more, as after a kill just before its end was recorded."""
        if not self.turns:
            return
        turn = await self.home.stored(self.turns[number % len(self.turns)])
        assert turn.update is not None
        steps = {**turn.update.steps, "facts": replace(turn.update.steps["facts"], status="pending")}
        pending = replace(turn.update, steps=steps)
        assert await self.home.store.conversations.rewrite(turn, result=turn.result or {}, update=pending)
        self.home.updater.notify(self.home.user)
        ended = await self.home.updater.wait_ended(user_id=self.home.user, turn_id=turn.message.turn_id, seconds=10)
        assert ended is not None
        assert replace(ended, steps={}) == replace(turn.update, steps={}), "its changes read as at the first run"

    async def _undo(self, number: int, force: bool) -> None:
        if self.turns:
            await self.home.turns.undo(self.home.user, self.turns[number % len(self.turns)], force=force)

    async def _learn(self, number: int) -> None:
        if self.turns:
            await self.home.turns.learn(self.home.user, self.turns[number % len(self.turns)])

    async def _put(self, key: str, value: str, scope: str) -> None:
        if scope == "thread":
            await self.home.facts.put(self.home.user, key, {"value": value, "scope": "thread", "thread_id": "t1"})
        else:
            await self.home.facts.put(self.home.user, key, {"value": value})

    async def _patch(self, number: int, value: str, pinned: bool) -> None:
        fact = await self._chosen(number)
        if fact is not None:
            await self.home.facts.patch(self.home.user, fact.id, {"value": value, "pinned": pinned})

    async def _end(self, number: int) -> None:
        fact = await self._chosen(number)
        if fact is not None:
            at = max(self.home.clock(), fact.valid_from + timedelta(seconds=1))
            await self.home.facts.patch(self.home.user, fact.id, {"valid_to": at})

    async def _forget(self, number: int) -> None:
        fact = await self._chosen(number)
        if fact is not None:
            await self.home.facts.forget(self.home.user, fact.id)
            self.forgotten.append(fact.id)

    async def _chosen(self, number: int) -> Fact | None:
        found = [*await self.home.living(thread="t1"), *await self.home.living(thread="t2")]
        return found[number % len(found)] if found else None


def test_any_order_of_acts_leaves_documents_and_index_equal(tmp_path: Path) -> None:
    users = itertools.count()

    async def live(home: House, acts: list[tuple[object, ...]]) -> None:
        home.user = f"user{next(users)}"
        life = Life(home)
        for act in acts:
            await life.act(act)
        await home.check_index()
        for fact_id in life.forgotten:
            for version in await home.facts.history(home.user, fact_id):
                if version["id"] == fact_id:
                    assert (version["status"], version["statement"]) == ("forgotten", "")

    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        home = runner.run(stack.enter_async_context(house(tmp_path)))

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(st.lists(acts, min_size=2, max_size=14))
        def lives(acts: list[tuple[object, ...]]) -> None:
            runner.run(live(home, acts))

        try:
            lives()
        finally:
            runner.run(stack.aclose())
