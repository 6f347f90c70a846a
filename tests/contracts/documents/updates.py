import asyncio
from dataclasses import replace

import pytest

from memory.documents import Backlog, Documents
from memory.turn import Turn
from memory.update import Step, Update, not_owed, owed
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.conversations import ids_of_indexed
from tests.contracts.documents.samples import LEASE, NOW, SECOND, answer, asked, failed, finish, full_update, indexed


async def turn_of(documents: Documents, turn_id: str = "turn1") -> Turn:
    turn = await documents.conversations.turn(user_id="ada", turn_id=turn_id)
    assert turn is not None
    return turn


async def failed_turns(documents: Documents, user_id: str | None = None) -> list[Turn]:
    found: list[Turn] = []
    async for batch in documents.updates.failed(user_id=user_id):
        assert batch
        found += batch
    return found


class UpdatesContract:
    longer_than_a_page = 110
    longer_than_a_batch = 260

    async def test_pending_turns_come_in_the_order_of_their_commits(self, documents: Documents):
        early = await documents.conversations.accept(asked("early"))
        await finish(documents, "middle", thread_id="t2", update=full_update())
        await finish(documents, "skipped", update=not_owed("disabled"))
        await finish(documents, "turn1", user_id="bob", update=owed())
        assert await documents.conversations.commit(answer(early), result={"n": 1}, update=owed())
        pending = await documents.updates.pending("ada", limit=9)
        assert pending == [await turn_of(documents, "middle"), await turn_of(documents, "early")]
        assert await documents.updates.pending("ada", limit=1) == pending[:1]
        assert await documents.updates.pending("ada", limit=0) == []
        assert await documents.updates.pending("eve", limit=9) == []

    async def test_users_wait_in_the_order_of_their_oldest_pending_turn(self, documents: Documents):
        for turn_id, user_id in (("1", "cleo"), ("1", "ada"), ("2", "cleo"), ("1", "bob")):
            await finish(documents, turn_id, user_id=user_id, update=owed())
        assert await documents.updates.pending_users(limit=9) == ["cleo", "ada", "bob"]
        assert await documents.updates.pending_users(limit=2) == ["cleo", "ada"]
        assert await documents.updates.pending_users(limit=0) == []
        first = (await documents.updates.pending("cleo", limit=1))[0]
        assert await documents.updates.record(first, not_owed("x"), generation=1)
        assert await documents.updates.pending_users(limit=9) == ["ada", "cleo", "bob"]

    async def test_a_long_backlog_hides_no_other_user(self, documents: Documents):
        await asyncio.gather(
            *(
                finish(documents, str(number), thread_id=f"t{number}", update=owed())
                for number in range(self.longer_than_a_page)
            )
        )
        await finish(documents, "1", user_id="bob", update=owed())
        assert await documents.updates.pending_users(limit=5) == ["ada", "bob"]

    async def test_a_record_replaces_the_update(self, documents: Documents):
        await finish(documents, "turn1", update=owed())
        turn = await turn_of(documents)
        update = full_update()
        assert await documents.updates.record(turn, update, generation=5)
        assert await turn_of(documents) == replace(turn, update=update)
        assert len(await documents.updates.pending("ada", limit=9)) == 1
        done = Update(steps={"facts": Step(status="failed", reason="x"), "index": Step(status="done")})
        assert await documents.updates.record(turn, done, generation=5)
        assert await documents.updates.pending("ada", limit=9) == []
        assert await documents.updates.pending_users(limit=9) == []
        assert len(await ids_of_indexed(documents)) == 2
        assert await documents.updates.record(turn, owed(), generation=6)
        assert len(await documents.updates.pending("ada", limit=9)) == 1
        assert await ids_of_indexed(documents) == []

    async def test_a_record_of_a_lower_generation_is_fenced_out(self, documents: Documents):
        await finish(documents, "turn1", update=owed())
        turn = await turn_of(documents)
        assert await documents.updates.record(turn, indexed(), generation=2**40)
        assert not await documents.updates.record(turn, not_owed("late"), generation=2**40 - 1)
        assert (await turn_of(documents)).update == indexed()
        assert await documents.updates.record(turn, not_owed("next"), generation=2**40)

    async def test_nothing_is_recorded_for_what_is_gone(self, documents: Documents):
        exchange = await finish(documents, "turn1", update=owed())
        turn = await turn_of(documents)
        assert not await documents.updates.record(Turn(replace(turn.message, user_id="bob")), indexed(), generation=1)
        unfinished = Turn(await documents.conversations.accept(asked("open")))
        assert not await documents.updates.record(unfinished, indexed(), generation=1)
        await documents.conversations.delete(exchange.user.scope)
        assert not await documents.updates.record(turn, indexed(), generation=1)
        assert await documents.conversations.turn(user_id="ada", turn_id="turn1") is None

    async def test_failed_turns_come_in_the_order_of_their_commits(self, documents: Documents):
        early = await documents.conversations.accept(asked("early"))
        await finish(documents, "z", thread_id="t2", update=failed())
        await finish(documents, "1", user_id="bob", update=failed())
        await finish(documents, "pending", update=owed())
        await finish(documents, "done", update=indexed())
        assert await documents.conversations.commit(answer(early), result={"n": 1}, update=failed())
        ada = [await turn_of(documents, "z"), await turn_of(documents, "early")]
        assert await failed_turns(documents, "ada") == ada
        assert await failed_turns(documents, "eve") == []
        everybody = await failed_turns(documents)
        assert [turn for turn in everybody if turn.message.user_id == "ada"] == ada
        assert [turn.message.turn_id for turn in everybody if turn.message.user_id == "bob"] == ["1"]
        assert len(everybody) == 3
        assert await documents.updates.record(ada[0], indexed(), generation=1)
        assert await failed_turns(documents, "ada") == ada[1:]

    async def test_failed_turns_come_in_batches(self, documents: Documents):
        for number in range(self.longer_than_a_batch):
            await finish(documents, str(number), thread_id=f"t{number}", update=failed())
        await finish(documents, "1", user_id="bob", update=failed())
        turn_ids = [str(number) for number in range(self.longer_than_a_batch)]
        assert [turn.message.turn_id for turn in await failed_turns(documents, "ada")] == turn_ids
        assert [turn.message.turn_id for turn in await failed_turns(documents)] == [*turn_ids, "1"]

    async def test_failed_turns_may_be_written_while_they_are_read(self, documents: Documents):
        for number in range(4):
            await finish(documents, str(number), update=failed())
        async for batch in documents.updates.failed():
            for turn in batch:
                assert await documents.conversations.rewrite(turn, result={}, update=owed())
        assert await failed_turns(documents) == []
        assert await documents.updates.backlog("ada") == Backlog(4, 0, NOW + SECOND)

    async def test_a_backlog_counts_what_is_not_done(self, documents: Documents):
        assert await documents.updates.backlog("ada") == Backlog()
        await finish(documents, "done", update=not_owed("disabled"))
        await finish(documents, "failed", update=failed())
        assert await documents.updates.backlog("ada") == Backlog(failed=1)
        oldest = await finish(documents, "1", update=owed())
        await finish(documents, "2", update=owed())
        await finish(documents, "0", user_id="bob", update=owed())
        assert await documents.updates.backlog("ada") == Backlog(2, 1, oldest.assistant.created_at)

    async def test_what_waits_is_counted_over_all_users_up_to_a_bound(self, documents: Documents):
        assert await documents.updates.waiting(at_most=9) == Backlog()
        await finish(documents, "done", update=not_owed("disabled"))
        await finish(documents, "failed", update=failed())
        assert await documents.updates.waiting(at_most=9) == Backlog()
        oldest = await finish(documents, "1", user_id="bob", update=owed())
        await finish(documents, "1", update=owed())
        await finish(documents, "2", update=owed())
        assert await documents.updates.waiting(at_most=9) == Backlog(3, oldest=oldest.assistant.created_at)
        assert await documents.updates.waiting(at_most=2) == Backlog(2, oldest=oldest.assistant.created_at)

    async def test_a_claim_excludes_others_until_its_lease_ends(self, documents: Documents):
        updates = documents.updates
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

    async def test_a_renewed_claim_lives_longer(self, documents: Documents):
        updates = documents.updates
        claim = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert claim is not None
        assert await updates.renew(claim, lease=LEASE, now=NOW + 10 * SECOND)
        assert await updates.claim("ada", owner="b", lease=LEASE, now=NOW + LEASE) is None
        assert await updates.claim("ada", owner="b", lease=LEASE, now=NOW + 10 * SECOND + LEASE) is not None

    async def test_a_released_claim_is_free_and_its_generation_stays(self, documents: Documents):
        updates = documents.updates
        claim = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert claim is not None
        await updates.release(claim)
        await updates.release(claim)
        assert not await updates.renew(claim, lease=LEASE, now=NOW)
        following = await updates.claim("ada", owner="b", lease=LEASE, now=NOW)
        assert following is not None
        assert following.generation > claim.generation

    async def test_the_owner_claims_again_under_a_new_generation(self, documents: Documents):
        updates = documents.updates
        first = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        second = await updates.claim("ada", owner="a", lease=LEASE, now=NOW)
        assert first is not None
        assert second is not None
        assert second.generation > first.generation
        assert not await updates.renew(first, lease=LEASE, now=NOW)
        assert await updates.renew(second, lease=LEASE, now=NOW)

    @pytest.mark.parametrize("round_number", range(3))
    async def test_of_concurrent_claims_one_wins(self, documents: Documents, round_number: int):
        user_id = f"ada{round_number}"
        claims = (documents.updates.claim(user_id, owner=str(n), lease=LEASE, now=NOW) for n in range(10))
        won = [claim for claim in await asyncio.gather(*claims) if claim]
        assert len(won) == 1
        assert await documents.updates.renew(won[0], lease=LEASE, now=NOW)

    async def test_claims_of_two_users_are_apart(self, documents: Documents):
        assert await documents.updates.claim("ada", owner="a", lease=LEASE, now=NOW) is not None
        assert await documents.updates.claim("bob", owner="b", lease=LEASE, now=NOW) is not None

    async def test_generations_rise_over_reopenings(self, backend: Backend):
        generations: list[int] = []
        for owner in ("a", "b", "c"):
            async with backend() as documents:
                claim = await documents.updates.claim("ada", owner=owner, lease=LEASE, now=NOW)
                assert claim is not None
                generations.append(claim.generation)
                await documents.updates.release(claim)
        assert generations == sorted(set(generations))
