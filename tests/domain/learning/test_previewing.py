"""Learning from a turn again: the difference that was shown is what is done, checked again, without a second call."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.learning.previewing import applied
from recollect.memory.transfer.export_lines import turn_lines
from recollect.memory.values.decision import Proposal
from recollect.memory.values.errors import NotFound, PreviewOutdated, UpdatePending
from recollect.memory.values.preview import LASTS, Preview
from tests.domain.support.handling import House, house, says
from tests.domain.support.learner import Dying, Killed, dying_facts

BERGEN = Proposal("update", "city", "Bergen", "The user lives in Bergen.", "Bergen", shown=1)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[House]:
    async with house(tmp_path) as opened:
        yield opened


async def shown(home: House, *proposals: Proposal, turn: str = "a") -> dict[str, Any]:
    """Return the preview of learning from the turn again, from an answer with these proposals."""
    said = (await home.stored(turn)).message.content
    home.extractor.lessons[said] = proposals
    return await home.turns.preview_learning("ada", turn)


async def told(home: House) -> None:
    """Store a turn that taught where the user lives, of a message that says more."""
    await home.turn("a", says("city", "Oslo"), replace(says("pet", "dog"), value=None, statement=None), BERGEN)
    assert await home.known() == {"city": "Oslo"}


async def preview_of(home: House, turn: str = "a") -> Preview:
    preview = (await home.update(turn)).preview
    assert preview is not None
    return preview


async def apply(home: House, preview: dict[str, Any]) -> dict[str, Any]:
    return await home.turns.apply_learning("ada", preview["turn_id"], preview_id=preview["preview_id"])


async def test_what_was_shown_is_done_without_asking_again(home: House) -> None:
    await told(home)
    preview = await shown(home, says("pet", "dog"), BERGEN)
    assert [change["after"] for change in preview["changes"]] == ["dog", "Bergen"]
    assert await home.known() == {"city": "Oslo"}
    asked = len(home.extractor.requests)
    done = await apply(home, preview)
    assert len(home.extractor.requests) == asked, "nobody is asked"
    assert await home.known() == {"city": "Bergen", "pet": "dog"}
    assert done["update"]["changes"][-2:] == preview["changes"], "exactly what was shown"
    assert done["update"]["status"] == "done"
    update = await home.update("a")
    assert (update.learned, update.planned, len(update.writes)) == (1, True, len(update.changes))
    await home.check_index()


async def test_it_is_done_once(home: House) -> None:
    await told(home)
    preview = await shown(home, says("pet", "dog"))
    done = await apply(home, preview)
    assert await apply(home, preview) == done
    assert (await home.update("a")).learned == 1
    assert (await preview_of(home)) == Preview(preview["preview_id"], (await preview_of(home)).at, "applied")


async def test_what_it_did_can_be_undone(home: House) -> None:
    await told(home)
    preview = await shown(home, says("pet", "dog"))
    await apply(home, preview)
    await home.turns.undo("ada", "a")
    assert await home.known() == {}
    with pytest.raises(PreviewOutdated):
        await apply(home, preview)


async def test_a_fact_that_changed_since_refuses_it(home: House) -> None:
    await told(home)
    preview = await shown(home, BERGEN)
    await home.turn("b", replace(says("city", "Rome"), decision="update"))
    with pytest.raises(PreviewOutdated):
        await apply(home, preview)
    assert await home.known() == {"city": "Rome"}
    assert (await home.update("a")).learned == 0


async def test_a_fact_of_another_key_changes_nothing_of_it(home: House) -> None:
    await told(home)
    preview = await shown(home, BERGEN)
    await home.turn("b", says("job", "nurse"))
    await apply(home, preview)
    assert await home.known() == {"city": "Bergen", "job": "nurse"}


@pytest.mark.parametrize("forgotten", ["named", "proposed"])
async def test_forgetting_takes_its_text_out_of_the_preview(home: House, forgotten: str) -> None:
    await told(home)
    preview = await shown(home, BERGEN, says("pet", "dog"))
    if forgotten == "proposed":
        await home.facts.put("ada", "animal", {"value": "DOG"})
    key = {"named": "city", "proposed": "animal"}[forgotten]
    await home.facts.forget("ada", (await home.one(key)).id)
    assert await preview_of(home) == Preview(preview["preview_id"], (await preview_of(home)).at, "void")
    with pytest.raises(PreviewOutdated):
        await apply(home, preview)
    assert "pet" not in await home.known()


async def test_forgetting_something_else_leaves_it(home: House) -> None:
    await told(home)
    await home.turn("b", says("job", "nurse"))
    preview = await shown(home, says("pet", "dog"))
    await home.facts.forget("ada", (await home.one("job")).id)
    await apply(home, preview)
    assert await home.known() == {"city": "Oslo", "pet": "dog"}


async def test_learning_from_the_turn_otherwise_voids_it(home: House) -> None:
    await told(home)
    preview = await shown(home, says("pet", "dog"))
    await home.turns.learn("ada", "a")
    with pytest.raises(PreviewOutdated):
        await apply(home, preview)
    assert (await home.update("a")).learned == 1


async def test_a_turn_has_one_preview_and_only_its_own(home: House) -> None:
    await told(home)
    await home.turn("b", says("job", "nurse"))
    first = await shown(home, says("pet", "dog"))
    second = await shown(home, says("pet", "dog"))
    for turn_id, preview_id in (("a", first["preview_id"]), ("b", second["preview_id"]), ("a", "never")):
        with pytest.raises(NotFound):
            await home.turns.apply_learning("ada", turn_id, preview_id=preview_id)
    with pytest.raises(NotFound):
        await home.turns.apply_learning("bob", "a", preview_id=second["preview_id"])
    assert await home.known() == {"city": "Oslo", "job": "nurse"}


async def test_it_lasts_fifteen_minutes(home: House) -> None:
    await told(home)
    await shown(home, says("pet", "dog"))
    preview = await preview_of(home)
    assert preview.expires_at == preview.at + timedelta(minutes=15)
    assert preview.is_open(preview.expires_at - timedelta(milliseconds=1))
    assert not preview.is_open(preview.expires_at)
    turn = await home.stored("a")
    update = replace(await home.update("a"), preview=replace(preview, at=preview.at - LASTS))
    assert await home.store.conversations.rewrite(turn, result=turn.result or {}, update=update)
    with pytest.raises(PreviewOutdated):
        await home.turns.apply_learning("ada", "a", preview_id=preview.id)
    assert await home.known() == {"city": "Oslo"}


async def test_a_turn_that_changed_while_the_model_was_asked_keeps_no_preview(home: House) -> None:
    await told(home)
    preview = home.turns.learning.preview

    async def slow(*given: Any, **named: Any) -> Preview:
        made = await preview(*given, **named)
        await home.turns.undo("ada", "a")
        return made

    turns = replace(home.turns, learning=_Slow(home.turns.learning, slow))
    with pytest.raises(UpdatePending):
        await turns.preview_learning("ada", "a")
    assert (await home.update("a")).preview is None


async def test_a_number_that_names_no_shown_fact_stays_refused(home: House) -> None:
    await told(home)
    preview = await shown(home, replace(BERGEN, shown=77), says("pet", "dog"))
    assert [refused["reason"] for refused in preview["refused"]] == ["it names a fact that was not shown"]
    done = await apply(home, preview)
    assert await home.known() == {"city": "Oslo", "pet": "dog"}
    assert preview["refused"][0] in done["update"]["refused"]


async def test_an_export_leaves_it_out(home: House) -> None:
    await told(home)
    before = turn_lines(await home.stored("a"))
    await shown(home, says("pet", "dog"))
    assert turn_lines(await home.stored("a")) == before


async def test_a_kill_at_any_write_is_made_good_without_asking_again(tmp_path: Path) -> None:
    for cut in range(4):
        async with house(tmp_path / str(cut)) as home:
            await told(home)
            preview = await shown(home, says("pet", "dog"), BERGEN)
            turn = await home.stored("a")
            made = await home.turns.learning.plan_again(turn, await preview_of(home))
            wished = applied(await home.update("a"), await preview_of(home), made)
            step, asked = home.turns.learning, len(home.extractor.requests)
            dying = replace(step, store=dying_facts(home.store, Dying(home.store.facts, cut)))
            if cut < 3:
                with pytest.raises(Killed):
                    await dying.run(turn, wished, _save)
            for _ in range(2):
                await step.run(turn, wished, _save)
            assert await home.known() == {"city": "Bergen", "pet": "dog"}
            assert len(await home.living()) == 2
            assert len(home.extractor.requests) == asked
            assert preview["changes"] == [change.as_json() for change in made.changes]


async def _save(_: object) -> None:
    """Everything is recorded already."""


class _Slow:
    def __init__(self, learning: Any, preview: Any) -> None:
        self.preview = preview
        self._learning = learning

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learning, name)
