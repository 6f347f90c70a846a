"""Forgetting: the text of a fact leaves every place but the messages, over real stores."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.ports.extractor import Extraction, ExtractionRequest
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import FactConflict, UpdatePending
from recollect.memory.values.fact import Fact
from recollect.memory.values.turn import Message
from recollect.memory.values.update import owed
from tests.contracts.store.samples import answer
from tests.domain.support.handling import House, house, says
from tests.domain.support.learner import Dying, Killed, With


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path) as opened:
        yield opened


def turn_result(fact: Fact) -> dict[str, Any]:
    """Return what a turn that recalled the fact stores."""
    hit = {"id": fact.id, "kind": "fact", "content": fact.statement, "score": 0.5}
    said = {"id": "m1", "kind": "episode", "content": "Oslo is where I live.", "score": 0.4}
    return {"model": "m", "memory": {"facts": {"city": fact.value, "name": "Ada"}, "hits": [hit, said]}}


async def change_city(home: House) -> Fact:
    """Return a fact that has been taught, superseded, recalled and changed by a person; the newest of it."""
    await home.turn("a", says("city", "Oslo"), says("name", "Ada"))
    await home.turn("b", says("pet", "dog"), result=turn_result(await home.one("city")))
    await home.turn("c", Proposal("update", "city", "Bergen", "The user lives in Bergen.", "Bergen"))
    await home.facts.patch("ada", (await home.one("city")).id, {"value": "Tromso", "statement": "Ada is in Tromso."})
    await home.turn("d", says("city", "Narvik"))
    return await home.one("city")


def texts_of_city(home: House, folder: Path) -> list[bytes]:
    """Return which of the texts about the city lie in the database's files, apart from those that messages hold."""
    held = b"".join(path.read_bytes() for path in folder.glob("recollect.db*"))
    found = [text for text in (b"city is Oslo", b"lives in Bergen", b"Tromso", b"city: Narvik") if text in held]
    return found


async def test_a_preview_names_all_that_forgetting_removes_and_removes_nothing(home: House) -> None:
    fact = await change_city(home)
    shown = await home.facts.forgetting_preview("ada", fact.id)
    texts = {version["value"] for version in shown.versions}
    assert {"Oslo", "Bergen", "Tromso"} <= texts
    # The turn that taught it, the one that recalled it, and those that changed it.
    assert (shown.turns, shown.is_all) == (4, True)
    assert (await home.one("city")).value == "Tromso"
    await home.facts.forget("ada", fact.id)
    assert (await home.facts.forgetting_preview("ada", fact.id)).turns == 0


async def test_forgetting_leaves_no_text_but_the_messages(home: House, tmp_path: Path) -> None:
    fact = await change_city(home)
    assert texts_of_city(home, tmp_path)
    await home.facts.forget("ada", fact.id)
    assert await home.known() == {"name": "Ada", "pet": "dog"}
    tombstones = await home.facts.history("ada", fact.id)
    assert len(tombstones) == 2
    for one in tombstones:
        assert (one["status"], one["key"], one["value"], one["statement"], one["evidence"]) == (
            *("forgotten", None, "", ""),
            None,
        )
    for turn_id in ("a", "c"):
        (change, *_) = (await home.update(turn_id)).changes
        assert (change.key, change.before, change.after, change.evidence, change.reason) == (
            *(None, None, None, ""),
            "forgotten",
        )
    (refused,) = (await home.update("d")).refused
    assert (refused.key, refused.value, refused.reason) == (None, None, "forgotten")
    recalled = ((await home.stored("b")).result or {})["memory"]
    assert recalled["facts"] == {"name": "Ada"}
    assert [hit["content"] for hit in recalled["hits"]] == ["", "Oslo is where I live."]
    assert [change.key for change in (await home.update("a")).changes] == [None, "name"]
    assert texts_of_city(home, tmp_path) == []
    assert "Oslo" in (await home.stored("a")).message.content
    await home.check_index()
    with pytest.raises(FactConflict):
        await home.facts.patch("ada", fact.id, {"value": "again"})
    await home.facts.forget("ada", fact.id)
    made = await home.facts.put("ada", "city", {"value": "Rome"})
    assert made.id != fact.id
    await home.check_index()


async def test_a_turn_that_is_still_learned_from_is_named_and_cleaned_later(home: House) -> None:
    gate = asyncio.Event()

    async def slow(request: ExtractionRequest, *, model: str | None = None) -> Extraction:
        await gate.wait()
        return Extraction((), "slow")

    home.extractor.extract = slow  # pyright: ignore[reportAttributeAccessIssue] - an instance's own way to answer
    message = await home.store.conversations.accept(Message("ada", "t1", "a", "user", "I live in Oslo.", home.clock()))
    update = owed(proposals=(says("city", "Oslo", source="tool"),))
    assert await home.store.conversations.commit(answer(message), result={"model": "m"}, update=update)
    home.updater.notify("ada")
    async with asyncio.timeout(10):
        while await home.known() != {"city": "Oslo"}:  # noqa: ASYNC110 - the facts step tells nobody
            await asyncio.sleep(0.01)
    fact = await home.one("city")
    hurried = replace(home.facts, wait_seconds=0.05)
    with pytest.raises(UpdatePending, match="forgotten"):
        await hurried.forget("ada", fact.id)
    assert await home.known() == {}
    assert (await home.facts.fact("ada", fact.id)).statement == ""
    gate.set()
    await home.facts.forget("ada", fact.id)
    (change,) = (await home.update("a")).changes
    assert (change.after, change.reason) == (None, "forgotten")
    await home.check_index()


async def test_a_forgetting_that_was_cut_off_is_completed_by_the_same_call(tmp_path: Path) -> None:
    for cut in range(12):
        dying = Dying(None, 1_000)

        def cutting(documents: Any, dying: Dying = dying) -> Any:
            shared = {"facts": documents.facts, "conversations": documents.conversations}
            parts = {name: _Shared(part, dying) for name, part in shared.items()}
            return With(documents, parts)

        folder = tmp_path / str(cut)
        async with house(folder, documents=cutting) as home:
            fact = await change_city(home)
            dying.left = cut
            try:
                await home.facts.forget("ada", fact.id)
            except Killed:
                dying.left = 1_000
                await home.facts.forget("ada", fact.id)
            else:
                assert cut > 6, "it writes that often"
            dying.left = 1_000
            assert await home.known() == {"name": "Ada", "pet": "dog"}
            assert texts_of_city(home, folder) == []
            await home.check_index()


class _Shared:
    """A part whose rewrites count with those of the others: what a person's call writes, not the updater's records."""

    def __init__(self, part: Any, dying: Dying) -> None:
        self._part, self._dying = part, dying

    def __getattr__(self, name: str) -> Any:
        self._dying.part = self._part
        return getattr(self._dying if name in {"replace", "rewrite"} else self._part, name)
