import asyncio
from dataclasses import replace

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.ports.updates import Backlog
from recollect.memory.updates.delays import Delay, delays_of
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Step, StepName, Update, not_owed, owed
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import LEASE, NOW, SECOND, answer, asked, failed, finish, full_update, indexed
from tests.contracts.store.suite.conversations import ids_of_indexed
from tests.contracts.store.suite.past_turns import past


async def turn_of(store: Store, turn_id: str = "turn1") -> Turn:
    turn = await store.conversations.turn(user_id="ada", turn_id=turn_id)
    assert turn is not None
    return turn


async def failed_turns(store: Store, user_id: str | None = None) -> list[Turn]:
    found: list[Turn] = []
    async for batch in store.updates.failed(user_id=user_id):
        assert batch
        found += batch
    return found


class UpdatesContract:
    longer_than_a_page = 110
    longer_than_a_batch = 260

    async def test_pending_turns_come_in_the_order_of_their_commits(self, store: Store):
        early = await store.conversations.accept(asked("early"))
        await finish(store, "middle", thread_id="t2", update=full_update())
        await finish(store, "skipped", update=not_owed("disabled"))
        await finish(store, "turn1", user_id="bob", update=owed())
        assert await store.conversations.commit(answer(early), result={"n": 1}, update=owed())
        pending = await store.updates.pending("ada", limit=9)
        finished = [await turn_of(store, "middle"), await turn_of(store, "early")]
        assert pending == [replace(turn, result=None) for turn in finished]
        assert await store.updates.pending("ada", limit=1) == pending[:1]
        assert await store.updates.pending("ada", limit=0) == []
        assert await store.updates.pending("eve", limit=9) == []

    async def test_pending_turns_of_the_past_come_in_the_order_of_their_times(self, store: Store):
        await finish(store, "live", update=owed())
        newest_first = [past(number, thread_id=f"t{number}", update=owed()) for number in (-1, -3, -2)]
        assert await store.imports.insert(newest_first) == 3
        for limit in (9, 2):
            pending = await store.updates.pending("ada", limit=limit, by_time=True)
            in_order = ["turn-3", "turn-2", "turn-1", "live"]
            assert [turn.message.turn_id for turn in pending] == in_order[:limit]

    async def test_pending_turns_are_the_same_where_messages_are_known(self, store: Store):
        first, second = [await finish(store, turn_id, update=full_update()) for turn_id in ("turn1", "turn2")]
        pending = await store.updates.pending("ada", limit=9, by_time=True)
        for known in ([first.user], [first.user, second.user]):
            assert await store.updates.pending("ada", limit=9, by_time=True, known=known) == pending

    async def test_users_wait_in_the_order_of_their_oldest_pending_turn(self, store: Store):
        for turn_id, user_id in (("1", "cleo"), ("1", "ada"), ("2", "cleo"), ("1", "bob")):
            await finish(store, turn_id, user_id=user_id, update=owed())
        assert await store.updates.pending_users(limit=9) == ["cleo", "ada", "bob"]
        assert await store.updates.pending_users(limit=2) == ["cleo", "ada"]
        assert await store.updates.pending_users(limit=0) == []
        first = (await store.updates.pending("cleo", limit=1))[0]
        assert await store.updates.record(first, not_owed("x"), generation=1)
        assert await store.updates.pending_users(limit=9) == ["ada", "cleo", "bob"]

    async def test_a_long_backlog_hides_no_other_user(self, store: Store):
        await asyncio.gather(
            *(
                finish(store, str(number), thread_id=f"t{number}", update=owed())
                for number in range(self.longer_than_a_page)
            )
        )
        await finish(store, "1", user_id="bob", update=owed())
        assert await store.updates.pending_users(limit=5) == ["ada", "bob"]

    async def test_a_record_replaces_the_update(self, store: Store):
        await finish(store, "turn1", update=owed())
        turn = await turn_of(store)
        update = full_update()
        assert await store.updates.record(turn, update, generation=5)
        assert await turn_of(store) == replace(turn, update=update)
        assert len(await store.updates.pending("ada", limit=9)) == 1
        done = Update(steps={"facts": Step(status="failed", reason="x"), "index": Step(status="done")})
        assert await store.updates.record(turn, done, generation=5)
        assert await store.updates.pending("ada", limit=9) == []
        assert await store.updates.pending_users(limit=9) == []
        assert len(await ids_of_indexed(store)) == 2
        assert await store.updates.record(turn, owed(), generation=6)
        assert len(await store.updates.pending("ada", limit=9)) == 1
        assert await ids_of_indexed(store) == []

    async def test_a_record_of_a_lower_generation_is_fenced_out(self, store: Store):
        await finish(store, "turn1", update=owed())
        turn = await turn_of(store)
        assert await store.updates.record(turn, indexed(), generation=2**40)
        assert not await store.updates.record(turn, not_owed("late"), generation=2**40 - 1)
        assert (await turn_of(store)).update == indexed()
        assert await store.updates.record(turn, not_owed("next"), generation=2**40)

    async def test_nothing_is_recorded_for_what_is_gone(self, store: Store):
        exchange = await finish(store, "turn1", update=owed())
        turn = await turn_of(store)
        assert not await store.updates.record(Turn(replace(turn.message, user_id="bob")), indexed(), generation=1)
        unfinished = Turn(await store.conversations.accept(asked("open")))
        assert not await store.updates.record(unfinished, indexed(), generation=1)
        await store.conversations.delete(exchange.user.scope)
        assert not await store.updates.record(turn, indexed(), generation=1)
        assert await store.conversations.turn(user_id="ada", turn_id="turn1") is None

    async def test_failed_turns_come_in_the_order_of_their_commits(self, store: Store):
        early = await store.conversations.accept(asked("early"))
        await finish(store, "z", thread_id="t2", update=failed())
        await finish(store, "1", user_id="bob", update=failed())
        await finish(store, "pending", update=owed())
        await finish(store, "done", update=indexed())
        assert await store.conversations.commit(answer(early), result={"n": 1}, update=failed())
        ada = [await turn_of(store, "z"), await turn_of(store, "early")]
        assert await failed_turns(store, "ada") == ada
        assert await failed_turns(store, "eve") == []
        everybody = await failed_turns(store)
        assert [turn for turn in everybody if turn.message.user_id == "ada"] == ada
        assert [turn.message.turn_id for turn in everybody if turn.message.user_id == "bob"] == ["1"]
        assert len(everybody) == 3
        assert await store.updates.record(ada[0], indexed(), generation=1)
        assert await failed_turns(store, "ada") == ada[1:]

    async def test_failed_turns_come_in_batches(self, store: Store):
        for number in range(self.longer_than_a_batch):
            await finish(store, str(number), thread_id=f"t{number}", update=failed())
        await finish(store, "1", user_id="bob", update=failed())
        turn_ids = [str(number) for number in range(self.longer_than_a_batch)]
        assert [turn.message.turn_id for turn in await failed_turns(store, "ada")] == turn_ids
        assert [turn.message.turn_id for turn in await failed_turns(store)] == [*turn_ids, "1"]

    async def test_failed_turns_may_be_written_while_they_are_read(self, store: Store):
        for number in range(4):
            await finish(store, str(number), update=failed())
        async for batch in store.updates.failed():
            for turn in batch:
                assert await store.conversations.rewrite(turn, result={}, update=owed())
        assert await failed_turns(store) == []
        assert await store.updates.backlog("ada") == Backlog(4, 0, NOW + SECOND)

    async def test_a_backlog_counts_what_is_not_done(self, store: Store):
        assert await store.updates.backlog("ada") == Backlog()
        await finish(store, "done", update=not_owed("disabled"))
        await finish(store, "failed", update=failed())
        assert await store.updates.backlog("ada") == Backlog(failed=1)
        oldest = await finish(store, "1", update=owed())
        await finish(store, "2", update=owed())
        await finish(store, "0", user_id="bob", update=owed())
        assert await store.updates.backlog("ada") == Backlog(2, 1, oldest.assistant.created_at)

    async def test_each_reason_why_updates_are_not_done_is_told_once(self, store: Store):
        waits = Step(reason="Nobody is there.", tries=2, due_at=NOW + SECOND)
        later = replace(waits, due_at=NOW + 2 * SECOND)
        given_up = Step(status="failed", reason="Nonsense.", tries=5, attempts=5)
        steps: tuple[dict[StepName, Step], ...] = (
            {"facts": later, "index": given_up},
            {"facts": waits, "index": Step()},
            {"index": given_up},
        )
        for number, of_turn in enumerate(steps):
            await finish(store, str(number), update=Update(steps=of_turn))
        await finish(store, "0", user_id="bob", update=Update(steps={"facts": waits}))
        assert await delays_of(store.updates, "ada") == [
            Delay("facts", "pending", "Nobody is there.", 2, NOW + SECOND),
            Delay("index", "failed", "Nonsense.", 2),
        ]
        assert await delays_of(store.updates, "eve") == []

    async def test_what_waits_is_counted_over_all_users_up_to_a_bound(self, store: Store):
        assert await store.updates.waiting(at_most=9) == Backlog()
        await finish(store, "done", update=not_owed("disabled"))
        await finish(store, "failed", update=failed())
        assert await store.updates.waiting(at_most=9) == Backlog()
        oldest = await finish(store, "1", user_id="bob", update=owed())
        await finish(store, "1", update=owed())
        await finish(store, "2", update=owed())
        assert await store.updates.waiting(at_most=9) == Backlog(3, oldest=oldest.assistant.created_at)
        assert await store.updates.waiting(at_most=2) == Backlog(2, oldest=oldest.assistant.created_at)

    async def test_a_claim_excludes_others_until_its_lease_ends(self, store: Store):
        updates = store.updates
        first = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert first is not None
        assert (first.user_id, first.owner) == ("ada", "a")
        assert await updates.claim("ada", owner="b", lease=LEASE, now=NOW + LEASE - SECOND) is None
        second = await updates.claim("ada", owner="b", lease=LEASE, now=NOW + LEASE)
        assert second is not None
        assert second.generation > first.generation
        assert not await updates.renew(first, lease=LEASE, now=NOW)
        await updates.release(first)
        assert await updates.claim("ada", owner="c", lease=LEASE, now=NOW + LEASE) is None

    async def test_a_renewed_claim_lives_longer(self, store: Store):
        updates = store.updates
        claim = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert claim is not None
        assert await updates.renew(claim, lease=LEASE, now=NOW + 10 * SECOND)
        assert await updates.claim("ada", owner="b", lease=LEASE, now=NOW + LEASE) is None
        assert await updates.claim("ada", owner="b", lease=LEASE, now=NOW + 10 * SECOND + LEASE) is not None

    async def test_a_released_claim_is_free_and_its_generation_stays(self, store: Store):
        updates = store.updates
        claim = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert claim is not None
        await updates.release(claim)
        await updates.release(claim)
        assert not await updates.renew(claim, lease=LEASE, now=NOW)
        following = await updates.claim("ada", owner="b", lease=LEASE, now=NOW)
        assert following is not None
        assert following.generation > claim.generation

    async def test_a_claim_is_over_when_the_turns_that_it_names_have_ended(self, store: Store):
        updates = store.updates
        for turn_id in ("turn1", "turn2"):
            await finish(store, turn_id, update=owed())
        claim = await updates.claim("ada", owner="a", lease=LEASE, now=NOW, turns=["turn1"])
        assert claim is not None
        for turn_id in ("turn1", "turn2"):
            assert await updates.claim("ada", owner="b", lease=LEASE, now=NOW) is None
            assert await updates.renew(claim, lease=LEASE, now=NOW, turns=["turn1", "turn2"])
            assert await updates.record(await turn_of(store, turn_id), not_owed("x"), generation=claim.generation)
        await updates.release(claim, is_over=True)
        following = await updates.claim("ada", owner="b", lease=LEASE, now=NOW)
        assert following is not None
        assert following.generation > claim.generation
        assert not await updates.renew(claim, lease=LEASE, now=NOW)

    async def test_the_owner_claims_again_under_a_new_generation(self, store: Store):
        updates = store.updates
        first = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        second = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert first is not None
        assert second is not None
        assert second.generation > first.generation
        assert not await updates.renew(first, lease=LEASE, now=NOW)
        assert await updates.renew(second, lease=LEASE, now=NOW)

    @pytest.mark.parametrize("round_number", range(3))
    async def test_of_concurrent_claims_one_wins(self, store: Store, round_number: int):
        user_id = f"ada{round_number}"
        claims = (store.updates.claim(user_id, owner=str(n), lease=LEASE, now=NOW) for n in range(10))
        won = [claim for claim in await asyncio.gather(*claims) if claim]
        assert len(won) == 1
        assert await store.updates.renew(won[0], lease=LEASE, now=NOW)

    async def test_claims_of_two_users_are_apart(self, store: Store):
        assert await store.updates.claim("ada", owner="a", lease=LEASE, now=NOW) is not None
        assert await store.updates.claim("bob", owner="b", lease=LEASE, now=NOW) is not None

    async def test_generations_rise_over_reopenings(self, backend: Backend):
        generations: list[int] = []
        for owner in ("a", "b", "c"):
            async with backend() as store:
                claim = await store.updates.claim("ada", owner=owner, lease=LEASE, now=NOW)
                assert claim is not None
                generations.append(claim.generation)
                await store.updates.release(claim)
        assert generations == sorted(set(generations))
