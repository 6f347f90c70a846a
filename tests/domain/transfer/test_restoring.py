"""Lines of an export on real embedded stores: read strictly, kept together, and nobody else's."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recollect.api.cli.import_bodies import Bodies
from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.transfer.export_lines import Line
from recollect.memory.transfer.exported_groups import ALONE
from recollect.memory.transfer.exporting import export_lines
from recollect.memory.transfer.import_fences import ERASED
from recollect.memory.transfer.importing import ImportResult, import_lines
from recollect.memory.transfer.line_source import SourceLine
from recollect.memory.transfer.markdown_files import MarkdownFiles, markdown_lines
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import Scope
from tests.domain.transfer.test_importing import WaitingEmbedder, said, talk

Fields = dict[str, Any]
FACT_ID = "00000000-0000-5000-8000-000000000001"
TIME = "2026-01-31T09:30:00.000Z"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with open_memory(MemoryConfig(data_dir=tmp_path / "data", sweep_seconds=3_600)) as opened:
        yield opened


async def numbered(lines: Iterable[Line]) -> AsyncIterator[SourceLine]:
    for number, line in enumerate(lines, 1):
        yield SourceLine(number, line)


async def bring(memory: Memory, *lines: Line, only_user: str | None = None) -> ImportResult:
    return await import_lines(memory, numbered(lines), only_user=only_user)


async def whole(memory: Memory, user: str = "ada") -> list[Line]:
    return [line async for batch in export_lines(memory.parts.store, Scope(user)) for line in batch]


def message(role: str = "user", **changes: Any) -> Fields:
    fields = {"user_id": "ada", "thread_id": "t1", "turn_id": "turn", "role": role, "content": "Hi.", "timestamp": TIME}
    return {"type": "message", **fields, **changes}


def result(**changes: Any) -> Fields:
    recalled: Fields = {"window": 0, "facts": {}, "summary": None, "hits": [], "degraded": []}
    return {"model": "m", "memory": recalled, "usage": {"input_tokens": 0}, "timings_ms": {"total": 0.5}, **changes}


def turn(**changes: Any) -> Fields:
    fields = {"type": "turn", "user_id": "ada", "thread_id": "t1", "turn_id": "turn", "position": 1}
    steps = {"facts": {"status": "skipped", "reason": "imported"}, "index": {"status": "done"}}
    return {**fields, "result": result(), "update": {"steps": steps}, **changes}


def fact(**changes: Any) -> Fields:
    times = dict.fromkeys(("created_at", "updated_at", "confirmed_at", "valid_from"), TIME)
    texts = {"key": "city", "value": "Paris", "statement": "city: Paris"}
    return {"type": "fact", "user_id": "ada", "id": FACT_ID, **texts, **times, **changes}


def thread(**changes: Any) -> Fields:
    return {"type": "thread", "user_id": "ada", "thread_id": "t1", "revision": 3, **changes}


def document(**changes: Any) -> Fields:
    fields = {"title": "A", "kind": "text", "content_hash": "x", "created_at": TIME, "part": 1, "is_last": True}
    return {"type": "document", "user_id": "ada", "id": "d", **fields, "passages": [{"text": "A."}], **changes}


async def test_lines_of_an_export_are_taken_and_known(memory: Memory) -> None:
    lines = [thread(title="T"), message(), message("assistant"), turn(), fact()]
    assert await bring(memory, *lines) == ImportResult(imported=5)
    assert await bring(memory, *lines) == ImportResult(known=5)
    assert [line["type"] for line in await whole(memory)] == ["thread", "message", "message", "turn", "fact"]
    assert (await whole(memory))[3] == turn()


def version(**changes: Any) -> Fields:
    """Return an earlier version of the fact."""
    times = dict.fromkeys(("updated_at", "confirmed_at", "valid_from"), TIME)
    nothing = dict.fromkeys(("thread_id", "turn_id", "evidence", "valid_to"))
    said = {"value": "Rome", "statement": "city: Rome", "scope": "user", "source": "turn", "importance": 0.5}
    return {**said, **times, **nothing, "pinned": False, "tags": [], "ended": {"by": "person", "at": TIME}, **changes}


REFUSED: list[tuple[Fields, str]] = [
    (turn(turn_id="a/b"), "turn_id must be 1-128 characters"),
    (turn(user_id="*"), "user_id must be 1-128 characters"),
    (turn(position=2), "position must be an odd number"),
    (turn(position=10**12), "position must be an odd number"),
    (turn(position=True), "position must be a whole number."),
    (turn(result=None), "result and update belong together."),
    (turn(result={"model": 1}), "result.model must be a text."),
    (turn(result=result(memory={})), "result.memory.window is missing."),
    (turn(update={"steps": {"feet": {}}}), "a key of update.steps must be one of facts, index, summary."),
    (turn(update={"steps": {"facts": {"status": "gone"}}}), "update.steps.facts.status must be one of"),
    (turn(update={"steps": [], "x": 1}), "update.x is not a known field."),
    (turn(update={"steps": {}, "changes": [{}]}), "update.changes[0].decision is missing."),
    (turn(absent={"role": "user", "timestamp": "then"}), "absent.timestamp must be a time such as"),
    (turn(extra=1), "extra is not a known field."),
    (message(content="\x00"), "The line must not contain NUL."),
    (message(content="\ud800"), "The line must not contain lone surrogates."),
    (message(metadata=[1]), "metadata must be an object."),
    (message(name="n" * 129), "name must have 1 to 128 characters."),
    (message(role="system"), "role must be one of user, assistant."),
    (message(timestamp=1e400), "The line must not contain NaN or Infinity."),
    (fact(id="f1"), "id must be a UUID."),
    (fact(key="City"), "key must be of the form"),
    (fact(scope="global"), "scope must be user, or thread with a thread_id."),
    (fact(scope="thread"), "scope must be user, or thread with a thread_id."),
    (fact(value="v" * 1001), "value must have at most 1,000 characters."),
    (fact(value=""), "value and statement must not be empty."),
    (fact(status="forgotten"), "what is forgotten has no text."),
    (fact(tags=["t"] * 11), "tags must be at most 10"),
    (fact(importance=2), "importance must be between 0 and 1."),
    (fact(importance="high"), "importance must be a number."),
    (fact(valid_to="2020-01-01"), "valid_to must not be before valid_from."),
    (fact(history=[{}] * 101), "history must have at most 100 versions."),
    (fact(history=[{"value": "x"}]), "history[0].statement is missing."),
    (fact(history=[version(value="v" * 2_001)]), "history[0].value must have at most 2,000 characters."),
    (fact(history=[version(tags=["t"] * 11)]), "history[0].tags must be at most 10"),
    (fact(history=[version(evidence="e" * 1_000_001)]), "history[0].evidence must have at most"),
    (fact(evidence="e" * 1_000_001), "evidence must have at most"),
    (message(content="c" * 1_000_001), "content must have "),
    (document(domain="d" * 65), "domain must have at most 64 characters."),
    (document(source="s" * 2_001), "source must have at most 2,000 characters."),
    (fact(revision=0), "revision must be 1 or more."),
    (fact(ended={"by": "chance", "at": TIME}), "ended.by must be one of"),
    (thread(archived_to=-1), "archived_to must be a number from 0"),
    (thread(title="t" * 2_000), "title must have at most"),
    (thread(documents=[{"id": "d", "attached_at": 1}]), "documents[0].attached_at must be a time"),
    ({"type": "summary", "user_id": "ada", "thread_id": "t", "content": " ", "by": "model"}, "content must not be"),
    ({"type": "summary", "user_id": "ada", "thread_id": "t", "content": "x", "by": "me"}, "by must be one of"),
    (document(), "id is not the document's"),
    (document(part=2), "The parts of a document must come in a row"),
    (document(kind="exe"), "kind must be one of"),
    (document(passages=[{"text": "A.", "page": 0}]), "page must be a number from 1."),
    ({"type": "point", "user_id": "ada"}, "type must be one of message, fact, turn"),
    ({"type": 7}, "type must be one of"),
    ({"type": "turn", "a": {"b": [[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}, "nested deeper"),
]


async def test_what_cannot_be_taken_is_named(memory: Memory) -> None:
    outcome = await bring(memory, *(line for line, _ in REFUSED), said("user", "Good."))
    assert outcome.imported == 1
    failed = {line.line: line.error for line in outcome.failed}
    assert len(failed) == len(REFUSED)
    for number, (line, error) in enumerate(REFUSED, 1):
        assert error in failed[number], line
        assert failed[number].endswith(".")
    assert await bring(memory, said("user", "Good.")) == ImportResult(known=1)


async def test_what_belongs_together_stands_together(memory: Memory) -> None:
    other = {"turn_id": "other"}
    lines = [message(), message(**other), turn(**other, result=None, update=None), turn(), message("assistant")]
    outcome = await bring(memory, *lines)
    assert outcome.imported == 2
    assert [(line.line, line.error) for line in outcome.failed] == [
        (1, ALONE),
        (4, "The turn's messages must stand in the lines before it."),
        (5, ALONE),
    ]
    elsewhere = await bring(memory, message(thread_id="t2"), message("assistant"), turn())
    assert [line.line for line in elsewhere.failed] == [1, 2, 3]
    absent = turn(absent={"role": "assistant", "timestamp": TIME})
    assert len((await bring(memory, message(), message("assistant"), absent)).failed) == 3
    assert len(await whole(memory)) == 2


async def test_a_caller_of_one_user_brings_that_users_lines_alone(memory: Memory) -> None:
    nobodys = {name: value for name, value in fact().items() if name != "user_id"}
    lines = [said("user", "Mine."), said("user", "Yours.", user="bob"), nobodys, turn(user_id="bob")]
    outcome = await bring(memory, *lines, only_user="ada")
    assert outcome.imported == 2
    assert [(line.line, line.error) for line in outcome.failed] == [
        (2, "user_id is not yours."),
        (4, "user_id is not yours."),
    ]
    assert await whole(memory, "bob") == []


async def test_who_is_erased_meanwhile_stays_erased(memory: Memory) -> None:
    embedder = WaitingEmbedder()

    async def erase() -> None:
        await embedder.is_waiting.wait()
        await memory.erasing.erase(Scope("ada"), by="me")

    # The embedder answers once the fence is up.
    memory.parts.fences.listeners.append(lambda _: embedder.gate.set())
    waiting = replace(memory, parts=replace(memory.parts, embedder=embedder))
    outcome, _ = await asyncio.gather(bring(waiting, *talk(2), fact()), erase())
    assert outcome.imported == 0
    assert {line.error for line in outcome.failed} == {ERASED}
    assert await whole(memory) == []
    assert await memory.parts.index.count() == 0
    assert (await bring(memory, *talk(2), fact())).imported == 5


async def test_bodies_are_never_cut_within_what_belongs_together(memory: Memory) -> None:
    turns = [
        {**line, "turn_id": f"turn{number}"}
        for number in range(9)
        for line in (message(content="x" * 50), message("assistant"), turn(position=2 * number + 1))
    ]
    lines = [thread(), {"type": "summary", "user_id": "ada", "thread_id": "t1", "content": "S.", "by": "model"}, *turns]
    bodies = [body async for body in Bodies(most=300).cut(numbered(lines))]
    assert len(bodies) > 5
    assert [body.number_of(place) for body in bodies for place in range(1, len(body.lines) + 1)] == list(range(1, 30))
    for body in bodies:
        outcome = await bring(memory, *map(json.loads, body.content.splitlines()))
        assert outcome == ImportResult(imported=len(body.lines))
    assert [line["type"] for line in await whole(memory)] == ["thread", "summary"] + ["message", "message", "turn"] * 9


def open_round(**changes: Any) -> Fields:
    called = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    asks = {"role": "assistant", "content": "", "tool_calls": [called]}
    content: Fields = {
        "history": [{"role": "system", "content": "Be kind."}],
        "message": "Weather?",
        "parts": None,
        "metadata": {"a": "b"},
        "exchange": [asks],
        "proposals": [],
        "follows": None,
        "appends": False,
        "text": "",
        "tool_calls": [called],
        "model": "m",
        "usage": {"input_tokens": 1},
        "response": {"rounds": [], "items": {"fc_0_r1": "c1"}, "instructions": None},
    }
    fields = {"user_id": "ada", "thread_id": "t1", "id": "r1", "kind": "open_round", "created_at": TIME}
    whole = {**content, **changes.pop("content", {})}
    return {"type": "client_record", **fields, "expires_at": "2026-02-01T09:30:00.000Z", "content": whole, **changes}


def conversation(**changes: Any) -> Fields:
    fields = {"user_id": "ada", "thread_id": "t1", "id": "conversation/t1", "kind": "conversation", "created_at": TIME}
    return {"type": "client_record", **fields, "content": {"metadata": {"topic": "rain"}}, **changes}


@pytest.mark.parametrize("is_markdown", [False, True])
async def test_what_clients_left_open_comes_back(memory: Memory, is_markdown: bool) -> None:
    lines = [conversation(), open_round()]
    files = [*MarkdownFiles().take(lines)]
    given = [line for file in files for line in markdown_lines(file.content)] if is_markdown else lines
    first, again = await bring(memory, *given), await bring(memory, *given)
    assert (first.imported, again.known) == (2, 2)
    assert not (*first.failed, *again.failed)
    assert await whole(memory) == lines


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (open_round(id="a/b"), "id"),
        (open_round(expires_at=None), "expires_at"),
        (open_round(content={"tool_calls": [{"id": "c1"}]}), "content.tool_calls[0].function"),
        (open_round(content={"history": [{"role": "nobody", "content": ""}]}), "content.history[0].role"),
        (open_round(content={"response": {"items": []}}), "content.response.items"),
        (conversation(id="conversation/t2"), "conversation"),
        (conversation(content={"metadata": {"a": 1}}), "content.metadata.a"),
        (turn(result=result(response={"rounds": [{"role": "tool"}]})), "result.response.rounds[0].content"),
        (turn(result=result(response={"items": {"fc_0_r1": 1}})), "result.response.items"),
        (turn(result=result(response="done")), "result.response"),
    ],
)
async def test_records_and_responses_of_another_shape_are_refused(memory: Memory, line: Line, field: str) -> None:
    brought = await bring(memory, message(), message("assistant"), line)
    assert any(field in failed.error for failed in brought.failed), brought.failed
    assert not [shown for shown in await whole(memory) if shown["type"] in {"turn", "client_record"}]


def test_further_messages_are_in_the_turns_markdown_file() -> None:
    rain = {"role": "tool", "content": "---\nIt rains: 5°.", "created_at": TIME, "name": None, "metadata": {"a": [1]}}
    lines = [message(further=[rain]), message("assistant"), turn()]
    (file,) = MarkdownFiles().take(lines)
    assert markdown_lines(file.content) == lines
