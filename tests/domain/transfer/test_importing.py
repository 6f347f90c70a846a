"""The bulk import on real embedded stores: pairing, ids, repeats, outages, facts and summaries."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.ports.facts import FactFilter
from recollect.memory.transfer.import_batch import DELETED, OTHER_CONTENT
from recollect.memory.transfer.import_line import ImportMessage, read_message
from recollect.memory.transfer.import_pairs import Numbered, Pair, Pairing
from recollect.memory.transfer.importing import MOST_FAILED, ImportResult, import_lines
from recollect.memory.transfer.line_source import SourceLine, Unreadable
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn
from tests.domain.support.indexed import CountingEmbedder

AT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
Fields = dict[str, Any]


@dataclass
class WaitingEmbedder(CountingEmbedder):
    """Says when it is asked, and waits until its gate is opened."""

    is_waiting: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Shut the gate."""

    @override
    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.is_waiting.set()
        return await super().embed_documents(texts)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with open_memory(MemoryConfig(data_dir=tmp_path / "data", sweep_seconds=3_600)) as opened:
        yield opened


def said(role: str, content: str, *, thread: str = "t1", user: str = "ada", **more: Any) -> Fields:
    return {"user_id": user, "thread_id": thread, "role": role, "content": content, "timestamp": AT.isoformat(), **more}


def talk(turns: int, *, thread: str = "t1", user: str = "ada") -> list[Fields]:
    """So many exchanges with ids."""
    return [
        said(role, f"{role} {number}", thread=thread, user=user, message_id=f"{thread}-{role}-{number}")
        for number in range(turns)
        for role in ("user", "assistant")
    ]


async def source(lines: Iterable[Fields | Unreadable]) -> AsyncIterator[SourceLine]:
    for number, line in enumerate(lines, 1):
        yield SourceLine(number, line)


async def bring(memory: Memory, *lines: Fields | Unreadable, learn: bool = False) -> ImportResult:
    return await import_lines(memory, source(lines), learn=learn)


def counts(result: ImportResult) -> tuple[int, int, int]:
    return result.imported, result.known, len(result.failed) + result.more_failed


async def texts(memory: Memory, thread: str = "t1", user: str = "ada") -> list[tuple[str, str]]:
    messages = await memory.messages(Scope(user, thread), limit=10_000)
    return [(message.role, message.content) for message in messages if not message.absent]


async def turns_of(memory: Memory, user: str = "ada") -> list[Turn]:
    return [turn async for batch in memory.parts.store.conversations.turns(user) for turn in batch]


async def points(memory: Memory, user: str = "ada") -> int:
    return await memory.parts.index.count(user_id=user)


def message(role: str, thread: str = "t1", content: str = "x") -> ImportMessage:
    return read_message(said(role, content, thread=thread))


def paired(*messages: ImportMessage, most: int = 10) -> list[tuple[int | None, int | None]]:
    pairing = Pairing(most=most)
    lines = [Numbered(number, one) for number, one in enumerate(messages)]
    found: list[Pair] = [pair for line in lines for pair in pairing.take(line)]
    found += pairing.rest()
    return [tuple(line and line.number for line in pair) for pair in found]  # pyright: ignore[reportReturnType] - two


def test_an_assistants_message_answers_the_one_right_before_it_in_its_thread() -> None:
    user, assistant = message("user"), message("assistant")
    assert paired(user, assistant, user, user, assistant, assistant) == [(0, 1), (2, None), (3, 4), (None, 5)]
    assert paired(assistant, user) == [(None, 0), (1, None)]
    other = message("user", "t2"), message("assistant", "t2")
    assert paired(user, other[0], assistant, other[1]) == [(0, 2), (1, 3)]


def test_the_thread_that_has_waited_longest_waits_no_longer_where_too_many_do() -> None:
    asked = [message("user", f"t{number}") for number in range(3)]
    answered = [message("assistant", f"t{number}") for number in range(3)]
    assert paired(*asked, *answered, most=2) == [(0, None), (None, 3), (1, 4), (2, 5)]


async def test_a_talk_is_stored_indexed_and_done(memory: Memory) -> None:
    result = await bring(memory, *talk(3))
    assert counts(result) == (6, 0, 0)
    assert await texts(memory) == [(role, f"{role} {number}") for number in range(3) for role in ("user", "assistant")]
    assert await points(memory) == 6
    stored = await turns_of(memory)
    assert {(turn.update.status, turn.update.reason) for turn in stored if turn.update} == {("skipped", "imported")}
    first = (await memory.messages(Scope("ada", "t1"), limit=1))[0]
    assert (first.created_at, first.imported_id) == (AT, "t1-user-0")


@pytest.mark.parametrize("with_ids", [True, False])
async def test_the_same_again_is_known(memory: Memory, with_ids: bool) -> None:
    lines = [line if with_ids else {**line, "message_id": None} for line in [*talk(150), *talk(5, thread="t2")]]
    lines += [said("user", "Only this.", thread="t3")]
    assert counts(await bring(memory, *lines)) == (311, 0, 0)
    assert counts(await bring(memory, *lines)) == (0, 311, 0)
    assert counts(await bring(memory, *lines[:1], *lines, *lines[-1:])) == (0, 313, 0)
    assert await points(memory) == 311
    assert len(await texts(memory)) == 300


async def test_what_comes_twice_at_once_is_stored_once(memory: Memory) -> None:
    one, other = said("user", "Hi", message_id="m1"), said("user", "Hi", thread="t2", message_id="m1")
    result = await bring(memory, one, one, other, said("user", "Ho", thread="t3", message_id="m1"))
    assert counts(result) == (1, 2, 1)
    assert result.failed == ((4, OTHER_CONTENT),)
    assert await points(memory) == 1


async def test_other_content_under_a_known_id_is_a_failed_line(memory: Memory) -> None:
    await bring(memory, said("user", "Hi", message_id="m1"))
    result = await bring(memory, said("user", "Ho", message_id="m1"), said("assistant", "Hm", message_id="m2"))
    assert (counts(result), result.failed) == ((1, 0, 1), ((1, OTHER_CONTENT),))
    assert counts(await bring(memory, said("user", "Ho", user="eve", message_id="m1"))) == (1, 0, 0)


async def test_messages_without_counterpart_are_turns_of_their_own(memory: Memory) -> None:
    lines = [said("assistant", "Welcome."), said("user", "A"), said("user", "B"), said("assistant", "C")]
    assert counts(await bring(memory, *lines)) == (4, 0, 0)
    assert await texts(memory) == [("assistant", "Welcome."), ("user", "A"), ("user", "B"), ("assistant", "C")]
    exchanges = await memory.parts.store.conversations.recent(Scope("ada", "t1"), limit=10)
    assert [len(exchange.messages) for exchange in exchanges] == [1, 1, 2]
    assert await points(memory) == 4


async def test_an_answer_that_comes_with_a_later_import_is_not_lost(memory: Memory) -> None:
    asked, answered = talk(1)
    assert counts(await bring(memory, asked)) == (1, 0, 0)
    assert counts(await bring(memory, asked, answered)) == (1, 1, 0)
    assert await texts(memory) == [("user", "user 0"), ("assistant", "assistant 0")]
    assert counts(await bring(memory, asked, answered)) == (0, 2, 0)


async def test_pairs_outlast_batches(memory: Memory) -> None:
    asked, answered = talk(1, thread="long")
    between = talk(600)
    assert counts(await bring(memory, asked, *between, answered)) == (1_202, 0, 0)
    (exchange,) = await memory.parts.store.conversations.recent(Scope("ada", "long"), limit=10)
    assert len(exchange.messages) == 2


async def test_bad_lines_cost_no_good_ones_and_are_no_part_of_a_pair(memory: Memory) -> None:
    lines = [
        said("user", "A"),
        said("user", ""),
        said("assistant", "B"),
        Unreadable("It cannot be read."),
        {**said("user", "C"), "colour": 1},
        said("user", "D", thread="t2"),
    ]
    result = await bring(memory, *lines)
    assert counts(result) == (3, 0, 3)
    assert [line.line for line in result.failed] == [2, 4, 5]
    exchanges = await memory.parts.store.conversations.recent(Scope("ada", "t1"), limit=10)
    assert [[message.content for message in exchange.messages] for exchange in exchanges] == [["A"], ["B"]]


async def test_of_many_failed_lines_a_thousand_are_named(memory: Memory) -> None:
    result = await bring(memory, *[said("user", "") for _ in range(MOST_FAILED + 7)], said("user", "A"))
    assert (len(result.failed), result.more_failed, result.imported) == (MOST_FAILED, 7, 1)
    assert result.as_json()["more_failed"] == 7
    assert "more_failed" not in ImportResult().as_json()


async def test_lines_of_several_users_stay_apart(memory: Memory) -> None:
    users = [f"u{number}" for number in range(30)]
    talks = [talk(3, user=user) for user in users]
    mixed = [line for lines in zip(*talks, strict=True) for line in lines]
    assert counts(await bring(memory, *mixed)) == (180, 0, 0)
    for user in users:
        assert len(await texts(memory, user=user)) == 6
        assert await points(memory, user) == 6


async def test_people_who_talk_keep_their_names(memory: Memory) -> None:
    await bring(memory, said("user", "Hi", name="Ada"), said("user", "Ho", name="Eve"))
    assert await memory.parts.store.timeline.names("ada", limit=10) == ["Ada", "Eve"]


async def test_an_import_goes_behind_what_is_there(memory: Memory) -> None:
    await bring(memory, *talk(2))
    await bring(memory, said("user", "Later.", message_id="later"), *talk(2))
    assert (await texts(memory))[-1] == ("user", "Later.")
    positions = [one.position for one in await memory.messages(Scope("ada", "t1"), limit=10)]
    assert positions == sorted(set(positions))


async def test_with_learn_the_turns_are_learned_from(memory: Memory) -> None:
    lines = [
        said("user", "I live in Paris.", message_id="m1"),
        said("assistant", "Nice.", message_id="m2"),
        said("user", "Thanks!", message_id="m3"),
        said("assistant", "My name is Bot and I live in Rome.", thread="t2", message_id="m4"),
    ]
    assert counts(await bring(memory, *lines, learn=True)) == (4, 0, 0)
    stored = await turns_of(memory)
    updates = await memory.parts.updater.wait_all_ended(stored, seconds=20)
    assert sorted(str(update.reason) for update in updates if update) == ["None", "imported", "trivial"]
    facts = await memory.facts.page("ada", FactFilter(memory.now()), limit=10)
    assert facts.facts == {"location": "Paris"}
    await memory.parts.points.settled("ada")
    assert await points(memory) == 4 + 1


async def learned(memory: Memory, *lines: Fields) -> dict[str, str]:
    """Return what is known, each value with the day from which it holds, after these lines were learned from."""
    await bring(memory, *lines, learn=True)
    await memory.parts.updater.wait_all_ended(await turns_of(memory), seconds=20)
    page = await memory.facts.page("ada", FactFilter(memory.now()), limit=10)
    return {str(fact.key): f"{fact.value} {fact.valid_from:%Y-%m-%d}" for fact in page.items}


async def held(memory: Memory, at: datetime) -> dict[str, str]:
    return dict((await memory.facts.page("ada", FactFilter(memory.now(), as_of=at), limit=10)).facts)


def once(year: int, content: str, *, thread: str = "old") -> Fields:
    return said("user", content, thread=thread, timestamp=datetime(year, 5, 15, tzinfo=UTC).isoformat())


async def test_old_lines_override_nothing_that_is_newer(memory: Memory) -> None:
    assert await learned(memory, said("user", "I live in Paris.")) == {"location": "Paris 2026-01-31"}
    known = await learned(memory, once(2018, "I live in Rome."), once(2020, "I live in Oslo.", thread="older"))
    assert known == {"location": "Paris 2026-01-31"}
    assert await learned(memory, once(2019, "I live in Bonn.", thread="late")) == known
    years = {year: await held(memory, datetime(year, 6, 1, tzinfo=UTC)) for year in (2017, 2018, 2019, 2020, 2025)}
    assert years == {
        2017: {},
        2018: {"location": "Rome"},
        2019: {"location": "Bonn"},
        2020: {"location": "Oslo"},
        2025: {"location": "Oslo"},
    }


async def test_undoing_what_an_old_line_taught_gives_its_time_back(memory: Memory) -> None:
    await learned(memory, once(2018, "I live in Rome."), once(2020, "I live in Oslo.", thread="older"))
    await learned(memory, once(2019, "I live in Bonn.", thread="late"))
    (late,) = [turn for turn in await turns_of(memory) if turn.message.thread_id == "late"]
    await memory.turns.undo("ada", late.message.turn_id)
    for year in (2018, 2019):
        assert await held(memory, datetime(year, 6, 1, tzinfo=UTC)) == {"location": "Rome"}
    assert await held(memory, datetime(2025, 6, 1, tzinfo=UTC)) == {"location": "Oslo"}


async def test_imported_turns_are_learned_from_in_the_order_of_their_times(memory: Memory) -> None:
    files = [once(2024, "My name is Eva.", thread="b"), once(2019, "My name is Ada.", thread="a")]
    assert await learned(memory, *files) == {"name": "Eva 2024-05-15"}
    assert await held(memory, datetime(2020, 1, 1, tzinfo=UTC)) == {"name": "Ada"}
    taught = {fact.value: fact for batch in [b async for b in memory.parts.store.facts.every("ada")] for fact in batch}
    assert taught["Eva"].replaces == taught["Ada"].id, "the older one was learned first"


async def test_relative_dates_of_old_lines_are_reckoned_from_when_they_were_said(memory: Memory) -> None:
    assert await learned(memory, once(2020, "I moved to Rome last month.")) == {"location": "Rome 2020-04-01"}


async def test_without_learn_nothing_is_learned(memory: Memory) -> None:
    await bring(memory, said("user", "I live in Paris."))
    assert (await memory.facts.page("ada", FactFilter(memory.now()), limit=10)).facts == {}


@pytest.mark.parametrize("outage", [True, False])
async def test_an_embedder_that_fails_costs_nothing(memory: Memory, outage: bool) -> None:
    failing = CountingEmbedder(outage=outage, refuses=None if outage else "user 3")
    assert counts(await bring(replace(memory, parts=replace(memory.parts, embedder=failing)), *talk(150))) == (
        300,
        0,
        0,
    )
    stored = await turns_of(memory)
    assert len(stored) == 150
    await memory.parts.updater.wait_all_ended(stored, seconds=20)
    assert await points(memory) == 300


async def test_documents_that_fail_stop_the_import_and_the_same_again_completes_it(memory: Memory) -> None:
    async def failing() -> AsyncIterator[SourceLine]:
        async for line in source(talk(700)):
            if line.number == 1_300:
                raise StoreUnavailable
            yield line

    with pytest.raises(StoreUnavailable):
        await import_lines(memory, failing())
    before = len(await texts(memory))
    assert 0 < before < 1_300
    result = await bring(memory, *talk(700))
    assert (result.known, result.imported) == (before, 1_400 - before)
    assert await points(memory) == 1_400


async def test_a_thread_that_is_deleted_while_it_is_imported_leaves_no_points(memory: Memory) -> None:
    embedder = WaitingEmbedder()

    async def delete() -> None:
        await embedder.is_waiting.wait()
        await memory.threads.delete(Scope("ada", "t1"), by="")
        embedder.gate.set()

    await asyncio.gather(bring(replace(memory, parts=replace(memory.parts, embedder=embedder)), *talk(5)), delete())
    assert await points(memory) == 0
    assert await texts(memory) == []


async def test_progress_is_told(memory: Memory) -> None:
    told: list[int] = []
    await import_lines(memory, source(talk(1_100)), progress=told.append)
    assert told == sorted(told)
    assert len(told) >= 2


def fact(value: str, key: str | None = "city", *, days: int = 0) -> Fields:
    line: Fields = {
        "kind": "fact",
        "user_id": "ada",
        "value": value,
        "timestamp": (AT + timedelta(days=days)).isoformat(),
    }
    return line if key is None else {**line, "key": key}


async def known_facts(memory: Memory) -> dict[str, str]:
    return dict((await memory.facts.page("ada", FactFilter(memory.now()), limit=10)).facts)


async def test_facts_are_imported_once_and_indexed(memory: Memory) -> None:
    lines = [fact("Paris"), fact("Ada likes tea.", None)]
    assert counts(await bring(memory, *lines)) == (2, 0, 0)
    assert counts(await bring(memory, *lines)) == (0, 2, 0)
    page = await memory.facts.page("ada", FactFilter(memory.now()), limit=10)
    assert [(one.key, one.value, one.source, one.valid_from) for one in page.items] == [
        ("city", "Paris", "import", AT),
        (None, "Ada likes tea.", "import", AT),
    ]
    assert await points(memory) == 2


async def test_a_newer_imported_fact_supersedes_an_older_imported_one_alone(memory: Memory) -> None:
    await bring(memory, fact("Paris", days=1))
    assert counts(await bring(memory, fact("Rome"))) == (0, 1, 0)
    assert await known_facts(memory) == {"city": "Paris"}
    assert counts(await bring(memory, fact("Oslo", days=2))) == (1, 0, 0)
    assert await known_facts(memory) == {"city": "Oslo"}
    assert counts(await bring(memory, fact("Paris", days=1))) == (0, 1, 0)
    assert await known_facts(memory) == {"city": "Oslo"}
    await memory.facts.put("ada", "city", FactEdit(value="Berlin"))
    assert counts(await bring(memory, fact("Madrid", days=3))) == (0, 1, 0)
    assert await known_facts(memory) == {"city": "Berlin"}


async def test_what_was_forgotten_stays_forgotten(memory: Memory) -> None:
    await bring(memory, fact("Paris"))
    page = await memory.facts.page("ada", FactFilter(memory.now()), limit=10)
    await memory.facts.forget("ada", page.items[0].id)
    assert counts(await bring(memory, fact("Paris"))) == (0, 1, 0)
    assert await known_facts(memory) == {}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"key": "A b"}, "key must be of the form [a-z][a-z0-9_]{0,63}."),
        ({"value": ""}, "value must have 1 to 1,000 characters."),
        ({"value": "x" * 1_001}, "value must have 1 to 1,000 characters."),
        ({"kind": "thing"}, "type must be one of message, fact, turn, thread, summary, document, client_record."),
        ({"role": "user"}, '"role" is not a known field.'),
    ],
)
async def test_bad_facts_are_failed_lines(memory: Memory, changes: Fields, error: str) -> None:
    assert (await bring(memory, {**fact("Paris"), **changes})).failed == ((1, error),)


async def test_a_thread_without_a_summary_gets_the_imported_one(memory: Memory) -> None:
    def summary(content: str, thread: str = "t1") -> Fields:
        return {"kind": "summary", "user_id": "ada", "thread_id": thread, "content": content}

    result = await bring(memory, *talk(1), summary("They talked."), summary("Of nothing.", "t9"))
    assert (counts(result), result.failed[0].line) == ((3, 0, 1), 4)
    assert counts(await bring(memory, summary("Something else."))) == (0, 1, 0)
    assert (await memory.threads.summary(Scope("ada", "t1"))).summary == "They talked."
    assert "SUMMARY_TOKENS" in (await bring(memory, *talk(1, thread="t2"), summary("x" * 9_000, "t2"))).failed[0].error


def test_sentences_end() -> None:
    assert all(text.endswith(".") for text in (DELETED, OTHER_CONTENT))
