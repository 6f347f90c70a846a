"""Checks what a person does with threads: list, archive, edit the summary, delete; and kills between any two steps."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from recollect.memory.erasure.data_holders import IndexHolder, StoreHolder
from recollect.memory.erasure.erasing import Erasing
from recollect.memory.erasure.fences import Fences
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.ports.summariser import Summariser
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.request import Request
from recollect.memory.recall.search import Search
from recollect.memory.threads.summary_step import SummaryStep
from recollect.memory.threads.thread_service import ThreadService
from recollect.memory.values.errors import (
    ErasurePending,
    IndexUnavailable,
    InvalidRequest,
    ModelUnavailable,
    NotFound,
    UnreadableAnswer,
)
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview, ThreadRecord
from recollect.memory.values.turn import Message, Turn, derived_id
from tests.contracts.store.samples import NOW, SECOND, fact
from tests.domain.support.talks import (
    T1,
    Killed,
    ScriptedSummariser,
    Stores,
    index_all,
    open_stores,
    remembered,
    say,
    say_all,
)
from tests.domain.support.updating import JumpingClock

CONFIG = MemoryConfig(window=3, summary_every=2, summary_tokens=100, sweep_seconds=0.02)
T2 = Scope("ada", "t2")


@dataclass
class Opened:
    """A thread service with what it works with."""

    service: ThreadService
    points: IndexOutbox
    woken: list[str]
    erasing: Erasing
    clock: JumpingClock

    async def close(self) -> None:
        await self.erasing.close()
        await self.service.close()
        await self.points.close()


def make(opened: Stores, summariser: Summariser | None = None, config: MemoryConfig = CONFIG) -> Opened:
    points = IndexOutbox(opened.store, opened.index, LexicalEmbedder(), sweep_seconds=3600)
    woken, clock = list[str](), JumpingClock()
    chosen = summariser or ScriptedSummariser()
    store = opened.store
    holders = (
        StoreHolder("conversations", store, store.conversations.delete),
        StoreHolder("facts", store, store.facts.delete),
        StoreHolder("threads", store, store.threads.delete),
        IndexHolder(opened.index),
    )
    erasing = Erasing(store.erasures, Fences(store.erasures), holders, clock, 0.02)
    service = ThreadService(store, opened.index, points, woken.append, erasing.erase_if_any, chosen, config, clock)
    return Opened(service, points, woken, erasing, clock)


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncGenerator[Stores]:
    async with open_stores(tmp_path) as stores:
        yield stores


async def record_of(opened: Stores, scope: Scope = T1) -> ThreadRecord:
    record = await opened.store.threads.record(scope)
    assert record is not None
    return record


async def summaries_in(opened: Stores) -> list[str]:
    entries = await opened.index.entries(await opened.index.ids())
    return [entry.content for entry in entries if entry.kind == "summary"]


# Lists.


async def test_threads_are_listed_newest_first_in_pages(opened: Stores) -> None:
    for number in range(7):
        scope = Scope("ada", f"t{number}")
        await say(opened.store, "hi", scope, turn_id=f"turn{number}", at=NOW + (number // 2) * 10 * SECOND)
    await say(opened.store, "hi", Scope("bob", "t1"))
    await opened.store.conversations.accept(Message("ada", "t0", "open", "user", "unanswered", NOW + 60 * SECOND))
    made = make(opened)
    await made.service.archive(Scope("ada", "t3"))
    whole = await made.service.page("ada", limit=50)
    assert [thread.thread_id for thread in whole] == ["t0", "t6", "t5", "t4", "t3", "t2", "t1"]
    assert [thread.is_archived for thread in whole] == [False, False, False, False, True, False, False]
    assert (whole[0].turns, whole[0].messages) == (1, 3)
    paged = list[ThreadOverview]()
    while page := await made.service.page(
        "ada", limit=2, before=(paged[-1].last_activity_at, paged[-1].thread_id) if paged else None
    ):
        paged += page
    assert paged == whole
    for thread in whole:
        assert await made.service.overview(Scope("ada", thread.thread_id)) == thread
    await made.close()


async def test_threads_with_nearly_the_same_name_and_time_are_told_apart(opened: Stores) -> None:
    names = ["t", "t-", "t-a", "t.", "t1", "t10", "ta", "T"]
    for name in names:
        await say(opened.store, name, Scope("ada", name), turn_id=f"turn-{name}")
    made = make(opened)
    for name in names:
        assert (await made.service.overview(Scope("ada", name))).thread_id == name
    await made.close()


async def test_there_is_no_thread_that_nobody_wrote_to(opened: Stores) -> None:
    await say(opened.store, "hi", Scope("bob", "t1"))
    made = make(opened)
    for verb in (
        made.service.overview,
        made.service.archive,
        made.service.summary,
        partial(made.service.delete, by="key"),
    ):
        with pytest.raises(NotFound):
            await verb(T1)
    with pytest.raises(NotFound):
        await made.service.set_summary(T1, "text")
    assert await opened.store.threads.record(T1) is None
    assert await made.service.page("ada", limit=5) == []
    await made.close()


# Archives.


async def test_an_archived_thread_has_a_summary_of_all_that_was_said_and_is_found_by_it(opened: Stores) -> None:
    await index_all(opened, await say_all(opened.store, ["tea", "berlin"]))
    made = make(opened)
    thread = await made.service.archive(T1)
    shown = thread.as_whole_json()
    assert (shown["archived"], shown["summary"], shown["summary_status"]) == (True, "[tea,berlin]", "done")
    assert shown["summary_by"] == "model"
    assert made.woken == ["ada"]
    assert await summaries_in(opened) == ["[tea,berlin]"]
    finding = Search(opened.store, opened.index, LexicalEmbedder(), CONFIG)
    options = RecallOptions(kinds=("summary",))
    (hit,) = (await finding.find(Request(Scope("ada"), "berlin", options), now=made.clock())).hits
    assert (hit.entry.kind, hit.entry.thread_id, hit.entry.content) == ("summary", "t1", "[tea,berlin]")
    await made.close()


async def test_archiving_twice_is_no_error_and_asks_nobody_again(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    summariser = ScriptedSummariser()
    made = make(opened, summariser)
    first = await made.service.archive(T1)
    second = await made.service.archive(T1)
    assert first == second
    assert len(summariser.requests) == 1
    both = await asyncio.gather(made.service.archive(T1), made.service.archive(T1))
    assert [thread.is_archived for thread in both] == [True, True]
    assert len(summariser.requests) == 1
    await made.close()


async def test_two_who_archive_at_once_make_one_summary(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    summariser = ScriptedSummariser(meanwhile=lambda: asyncio.sleep(0.05))
    made = make(opened, summariser)
    both = await asyncio.gather(*(made.service.archive(T1) for _ in range(5)))
    assert {thread.as_whole_json()["summary"] for thread in both} == {"[0,1]"}
    assert len(summariser.requests) == 1
    await made.close()


async def test_writing_reopens_a_thread_and_archiving_it_again_adds_to_the_summary(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    made = make(opened)
    await made.service.archive(T1)
    await say(opened.store, "2")
    assert not (await made.service.overview(T1)).is_archived
    assert (await made.service.archive(T1)).is_archived
    assert (await record_of(opened)).summary == "[0,1][2]"
    assert await summaries_in(opened) == ["[0,1][2]"]
    await made.close()


async def test_a_rolling_summary_goes_on_where_the_archive_ended(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1", "2"])
    summariser = ScriptedSummariser()
    made = make(opened, summariser)
    await made.service.archive(T1)
    step = SummaryStep(opened.store, summariser, CONFIG, made.clock, made.points)
    for text in ("3", "4", "5", "6", "7"):
        turn = await say(opened.store, text)
        assert turn.update is not None
        await step.run(turn, turn.update, _unsaved)
    assert (await record_of(opened)).summary == "[0,1,2][3,4]"
    await made.points.sync("ada")
    assert await summaries_in(opened) == ["[0,1,2][3,4]"]
    await made.close()


async def test_an_archive_needs_no_rolling_summaries(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    made = make(opened, config=CONFIG.replace(summary_every=0))
    assert (await made.service.archive(T1)).as_whole_json()["summary"] == "[0,1]"
    await made.close()


async def test_an_unfinished_turn_is_archived_without_being_summarised_and_reopens_when_it_ends(opened: Stores) -> None:
    await say(opened.store, "0")
    message = await opened.store.conversations.accept(Message("ada", "t1", "open", "user", "late", NOW))
    made = make(opened)
    assert (await made.service.archive(T1)).is_archived
    assert (await record_of(opened)).summary == "[0]"
    await say(opened.store, "late", turn_id="open")
    assert message.position == 3
    assert not (await made.service.overview(T1)).is_archived
    await made.service.archive(T1)
    assert (await record_of(opened)).summary == "[0][late]"
    await made.close()


async def test_a_thread_past_its_tokens_is_archived_by_itself(opened: Stores) -> None:
    config = CONFIG.replace(summary_every=0, archive_tokens=100)
    made, summariser = make(opened), ScriptedSummariser()
    step = SummaryStep(opened.store, summariser, config, made.clock, made.points)
    archived = list[int]()
    turns = list[Turn]()
    for number in range(12):
        turns.append(await say(opened.store, str(number), reply="x" * 95))
        for _ in range(2):
            await step.run(turns[-1], remembered(), _unsaved)
        if (await made.service.overview(T1)).is_archived:
            archived.append(number)
    assert archived == [4, 9]  # 25 tokens a turn
    assert (await record_of(opened)).summary == "[0,1,2,3,4][5,6,7,8,9]"
    again = SummaryStep(opened.store, summariser, config, made.clock, made.points)
    await again.run(turns[-1], remembered(), _unsaved)
    assert len(summariser.requests) == 2
    await made.close()


async def test_a_model_outage_leaves_the_thread_archived_and_its_summary_pending(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    summariser = ScriptedSummariser(errors=[ModelUnavailable() for _ in range(9)])
    made = make(opened, summariser)
    shown = (await made.service.archive(T1)).as_whole_json()
    assert (shown["archived"], shown["summary"], shown["summary_status"]) == (True, None, "pending")
    while summariser.errors:
        assert (await made.service.archive(T1)).as_whole_json()["summary_status"] == "pending"  # tries at once
    assert (await made.service.archive(T1)).as_whole_json()["summary"] == "[0,1]"
    await made.points.sync("ada")
    assert await summaries_in(opened) == ["[0,1]"]
    await made.close()


async def test_after_an_outage_the_background_makes_the_summary(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    made = make(opened, ScriptedSummariser(errors=[ModelUnavailable()]))
    assert (await made.service.archive(T1)).as_whole_json()["summary_status"] == "pending"
    await _done(opened)
    assert (await record_of(opened)).summary == "[0,1]"
    await made.close()


async def test_after_five_unreadable_answers_the_extract_serves(opened: Stores) -> None:
    await say_all(opened.store, ["I like tea.", "My cat is called Tom."])
    summariser = ScriptedSummariser(errors=[UnreadableAnswer() for _ in range(99)])
    made = make(opened, summariser)
    assert (await made.service.archive(T1)).as_whole_json()["summary_status"] == "pending"
    for _ in range(4):
        await made.service.archive(T1)  # tries at once
    record = await record_of(opened)
    assert (record.summary, record.summary_by) == ("User: I like tea.\nUser: My cat is called Tom.", "extract")
    assert not record.closing
    assert len(summariser.requests) == 5
    await made.close()


async def test_a_slow_model_is_waited_for_only_so_long(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    gate = asyncio.Event()
    made = make(opened, ScriptedSummariser(meanwhile=gate.wait), CONFIG.replace(memory_wait_seconds=0.05))
    assert (await made.service.archive(T1)).as_whole_json()["summary_status"] == "pending"
    gate.set()
    await _done(opened)
    assert (await made.service.overview(T1)).as_whole_json()["summary"] == "[0,1]"
    await made.close()


async def test_another_process_leaves_a_young_archive_alone_and_finishes_an_old_one(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    first = make(opened, ScriptedSummariser(errors=[ModelUnavailable()]))
    await first.service.archive(T1)
    second = make(opened)
    await second.service.close_archives()
    assert (await record_of(opened)).closing
    second.clock.jump(timedelta(seconds=20))
    await second.service.close_archives()
    await _done(opened)
    assert (await record_of(opened)).summary == "[0,1]"
    await first.close()
    await second.close()


async def test_killed_between_any_two_steps_an_archive_is_finished_by_the_next_start(tmp_path: Path) -> None:
    begun = 0
    for calls in range(60):
        folder = tmp_path / str(calls)
        async with open_stores(folder) as stores:
            await index_all(stores, await say_all(stores.store, ["0", "1", "2"]))
            mortal = stores.mortal(calls)
            dying = make(mortal)
            died = await _dies(dying)
            await dying.close()
        async with open_stores(folder) as stores:
            record = await stores.store.threads.record(T1)
            made = make(stores)
            await made.service.close_archives(at_start=True)
            if record is not None:
                await _done(stores)
            for user_id in await made.points.users():
                await made.points.sync(user_id)
            thread = await made.service.overview(T1)
            assert thread.messages == 6
            if record is not None and record.archived_to:
                begun += 1
                assert thread.as_whole_json()["summary"] == "[0,1,2]"
                assert thread.as_whole_json()["summary_status"] == "done"
                assert thread.is_archived
                assert await summaries_in(stores) == ["[0,1,2]"]
            else:
                assert not thread.is_archived
                assert await summaries_in(stores) == []
                await made.service.archive(T1)  # as the caller, who got no answer, does again
                assert await summaries_in(stores) == ["[0,1,2]"]
            await made.close()
        if not died:
            assert begun >= 10
            return
    raise AssertionError("it was always killed")


# A person's summary.


async def test_a_persons_summary_is_what_the_next_one_starts_from(opened: Stores) -> None:
    await say_all(opened.store, ["0", "1"])
    made = make(opened)
    assert (await made.service.summary(T1)).summary is None
    written = await made.service.set_summary(T1, "  They like tea. ")
    assert (written.summary, written.summary_by) == ("They like tea.", "person")
    assert await summaries_in(opened) == []
    assert (await made.service.archive(T1)).as_whole_json()["summary"] == "They like tea.[0,1]"
    await made.service.set_summary(T1, "They like coffee.")
    assert await summaries_in(opened) == ["They like coffee."]
    await made.close()


@pytest.mark.parametrize("nothing", [None, "", " \n"])
async def test_a_person_removes_a_summary_from_documents_and_index(opened: Stores, nothing: str | None) -> None:
    await say_all(opened.store, ["0", "1"])
    made = make(opened)
    await made.service.archive(T1)
    await made.service.set_summary(T1, nothing)
    record = await made.service.summary(T1)
    assert (record.summary, record.summary_by) == (None, None)
    assert await summaries_in(opened) == []
    assert (await made.service.archive(T1)).as_whole_json()["summary"] is None
    await made.close()


@pytest.mark.parametrize("text", ["x" * 401, "a\x00b", "\ud800"])
async def test_a_summary_that_is_too_long_or_cannot_be_stored_is_refused(opened: Stores, text: str) -> None:
    await say(opened.store, "0")
    made = make(opened)
    with pytest.raises(InvalidRequest) as refused:
        await made.service.set_summary(T1, text)
    assert [problem.field for problem in refused.value.problems] == ["summary"]
    assert (await made.service.set_summary(T1, "x" * 400)).summary == "x" * 400
    await made.close()


# Deletion.


def _id(name: str) -> str:
    return derived_id("ada", name, "fact")


async def _lived_in(stores: Stores) -> Opened:
    """Return two threads with messages, points, a fact of their own and a summary, and a fact of the user's."""
    made = make(stores)
    for scope in (T1, T2):
        own = say_all(stores.store, [f"{scope.thread} 0", f"{scope.thread} 1"], scope)
        await index_all(stores, await own)
        working = fact(_id(scope.thread), scope="thread", thread_id=scope.thread, key="topic", value="tea")
        assert await stores.store.facts.insert(working)
        await made.service.archive(scope)
    assert await stores.store.facts.insert(fact(_id("user"), thread_id="t1", turn_id="t1 0"))
    await made.points.sync("ada")
    return made


async def test_a_deleted_thread_is_gone_and_the_users_facts_stay(opened: Stores) -> None:
    made = await _lived_in(opened)
    assert await opened.index.count() == 13
    deleted = await made.service.delete(T1, by="key")
    assert deleted.counts == {"conversations": 4, "facts": 1, "threads": 1, "index": 6}
    assert set(deleted.remaining.values()) == {0}
    await _only_the_other_is_left(opened)
    with pytest.raises(NotFound):
        await made.service.delete(T1, by="key")
    await say(opened.store, "again", turn_id="t1 0")
    assert (await made.service.overview(T1)).as_whole_json()["summary"] is None
    await made.close()


async def test_a_deletion_that_was_killed_is_finished_by_another(tmp_path: Path) -> None:
    for calls in range(6):
        async with open_stores(tmp_path / str(calls)) as stores:
            made = await _lived_in(stores)
            died = False
            dying = make(stores.mortal(calls))
            try:
                await dying.service.delete(T1, by="key")
            except Killed:
                died = True
            assert died == (calls < 5)
            if died:
                await made.service.delete(T1, by="key")
            await _only_the_other_is_left(stores)
            await dying.close()
            await made.close()


async def test_points_that_a_broken_index_kept_go_when_it_is_back(opened: Stores) -> None:
    made = await _lived_in(opened)
    broken = _Broken(opened.index)
    made.erasing.holders = [*made.erasing.holders[:-1], IndexHolder(cast("VectorIndex", broken))]
    with pytest.raises(ErasurePending):
        await made.service.delete(T1, by="key")
    assert await opened.store.conversations.last_position(T1) == 0
    broken.is_down = False
    made.erasing.start()
    async with asyncio.timeout(10):
        while await opened.index.count() > 7:  # noqa: ASYNC110 - a task's doing
            await asyncio.sleep(0.01)
    await _only_the_other_is_left(opened)
    await made.close()


@dataclass
class _Broken:
    """An index that cannot be erased from while it is down."""

    index: VectorIndex
    is_down: bool = True

    async def erase(self, scope: Scope) -> int:
        if self.is_down:
            raise IndexUnavailable
        return await self.index.erase(scope)

    async def remaining(self, scope: Scope) -> int:
        return await self.index.remaining(scope)


async def _only_the_other_is_left(stores: Stores) -> None:
    store = stores.store
    assert await store.conversations.messages(T1, limit=10) == []
    assert await store.threads.record(T1) is None
    left = await store.facts.facts(user_id="ada", fact_ids=[_id("t1"), _id("t2"), _id("user")])
    assert {item.id for item in left} == {_id("t2"), _id("user")}
    entries = await stores.index.entries(await stores.index.ids())
    assert {entry.thread_id for entry in entries} == {"t2", None}
    assert len(entries) == 7


async def _dies(dying: Opened) -> bool:
    """Tell whether the archive was cut off. A killed process says nothing: what its tasks raised is of no interest."""
    try:
        await dying.service.archive(T1)
    except Killed:
        return True
    return False


async def _done(opened: Stores) -> None:
    """Wait until the archive of T1 owes no summary."""
    async with asyncio.timeout(10):
        while (await record_of(opened)).closing:  # noqa: ASYNC110 - a task's doing
            await asyncio.sleep(0.01)


async def _unsaved(update: object) -> None:
    raise AssertionError("nothing to save")


def test_a_record_says_whether_its_summary_is_to_come() -> None:
    record = ThreadRecord("ada", "t1")
    assert record.summary_status is None
    assert replace(record, summary="x").summary_status == "done"
    assert replace(record, archived_to=2).summary_status == "done"
    assert replace(record, archived_to=2, closing=True).summary_status == "pending"
