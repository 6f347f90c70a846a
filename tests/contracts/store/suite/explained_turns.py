"""A turn is explained from its record and what the store has now, and what is gone is named."""

from dataclasses import replace
from typing import Any

from recollect.memory.learning.turns.explaining import Explaining
from recollect.memory.ports.store import Store
from recollect.memory.values.decision import Change, RefusedProposal
from recollect.memory.values.left_out import LeftOut, record_of
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.turn import RECORDED, Message
from recollect.memory.values.update import Step, Update
from tests.contracts.store.samples import NOW, answer, asked, fact, finish

SAID = "Hello! I moved to  Oslo,\nwhich I love."
TAUGHT = Update(
    steps={"facts": Step("done"), "index": Step("done")},
    changes=(Change("add", "f9", "city", None, "Oslo", "i moved to Oslo"),),
    refused=(RefusedProposal("add", None, "pet", "dog", "I have a dog", "the quote is not in the user's message"),),
)


def hit(message: Message, **fields: Any) -> dict[str, Any]:
    shown = {"id": message.id, "kind": "episode", "role": message.role, "name": None, "content": message.content}
    return {**shown, "turn_id": message.turn_id, "thread_id": message.thread_id, "created_at": "2026-02-01T", **fields}


async def told(store: Store) -> None:
    """Store a turn whose record names a message, facts of all fates, and what was left out."""
    early = await finish(store, "early", thread_id="t2")
    gone = Message("ada", "t2", "gone", "user", "erased", NOW)
    await finish(store, "before")
    for one in (
        fact("f1", key="city", value="Oslo", statement="Lives in Oslo."),
        fact("f2", key=None, value="", statement="", status="forgotten"),
        fact("f3", user_id=GLOBAL_USER, key="rule", value="Be kind.", scope="global"),
    ):
        assert await store.facts.insert(one)
    kinds = ["fact", "fact", "fact", "note", "summary", "message", "message"]
    ids = ["f1", "f3", "f4", "f2", None, early.user.id, gone.id]
    out = [
        LeftOut(early.assistant.id, "episode", "early", "rank", "5 others score higher", {"fused": 0.123456}),
        LeftOut(gone.id, "episode", "gone", "threshold", "too low", {"dense": 0.01}),
        LeftOut("f2", "fact", None, "gone", "too low", {}),
    ]
    record = {
        "window_from": 1,
        "left_out": record_of(out, count=3),
        "block": {"tokens": 99, "kinds": kinds, "ids": ids, "costs": [50] * len(ids)},
    }
    facts = {"city": "Oslo", "rule": "Be kind."}
    hits = [hit(early.user), hit(gone, content="")]
    memory = {"window": 2, "facts": facts, "summary": "They met.", "hits": hits, "degraded": []}
    trace = [{"id": early.user.id, "scores": {"fused": 0.5, "thread": 0.1}, "stage": "selected", "reason": None}]
    result = {"model": "m", "memory": memory, "trace": trace, RECORDED: record}
    message = await store.conversations.accept(asked("told", content=SAID))
    assert await store.conversations.commit(answer(message), result=result, update=TAUGHT)


class ExplainedTurnsContract:
    async def test_the_block_is_rebuilt_and_what_is_gone_is_named(self, store: Store) -> None:
        await told(store)
        block = (await Explaining(store, 1_500).explain("ada", "told"))["block"]
        assert block["tokens"] == 99
        assert [(one["line"], one["state"]) for one in block["entries"]] == [
            ('- "city": "Oslo"', "shown"),
            ('- "rule": "Be kind."', "shown"),
            ("- (deleted since)", "deleted"),
            ("- (forgotten since)", "forgotten"),
            ('"They met."', "shown"),
            ('- [2026-02-01] "user" said: "Hello."', "shown"),
            ("- (deleted since)", "deleted"),
        ]
        assert '- "city": "Oslo"\n' in block["text"]

    async def test_what_was_left_out_has_its_reason_and_its_text_while_that_exists(self, store: Store) -> None:
        await told(store)
        left_out = (await Explaining(store, 1_500).explain("ada", "told"))["left_out"]
        assert left_out["count"] == 3
        assert [(one["content"], one["state"], one["reason"]) for one in left_out["items"]] == [
            ("Hi!", "shown", "5 others score higher"),
            (None, "deleted", "too low"),
            (None, "forgotten", "too low"),
        ]
        assert [one["scores"] for one in left_out["items"]] == [{"fused": 0.1235}, {"dense": 0.01}, {}]

    async def test_hits_have_their_parts_and_quotes_their_places(self, store: Store) -> None:
        await told(store)
        shown = await Explaining(store, 1_500).explain("ada", "told")
        assert [(one["parts"], one["state"]) for one in shown["hits"]] == [
            ({"fused": 0.5, "thread": 0.1}, "shown"),
            (None, "deleted"),
        ]
        place = shown["taught"][0]["quote"]
        assert SAID[place["start"] : place["end"]] == "I moved to  Oslo"
        assert shown["refused"][0]["quote"] is None
        assert shown["refused"][0]["reason"]

    async def test_the_window_is_what_is_left_of_it(self, store: Store) -> None:
        await told(store)
        window = (await Explaining(store, 1_500).explain("ada", "told"))["window"]
        assert (window["turns"], window["gone"]) == (2, 1)
        assert [(one["turn_id"], one["content"]) for one in window["messages"]] == [
            ("before", "Hello."),
            ("before", "Hi!"),
        ]

    async def test_an_older_turn_says_that_nothing_was_recorded(self, store: Store) -> None:
        await finish(store, "old")
        shown = await Explaining(store, 1_500).explain("ada", "old")
        assert (shown["recorded"], shown["left_out"], shown["block"], shown["taught"]) == (False, None, None, [])

    async def test_nobody_else_s_text_is_read(self, store: Store) -> None:
        foreign = await finish(store, "early", user_id="bob", thread_id="t2")
        await told(store)
        stored = await store.conversations.turn(user_id="ada", turn_id="told")
        assert stored is not None
        assert stored.result is not None
        assert stored.update is not None
        out = record_of([LeftOut(foreign.user.id, "episode", "early", "rank", "low", {})], count=1)
        result = {**stored.result, RECORDED: {**stored.record, "left_out": out}}
        assert await store.conversations.rewrite(stored, result=result, update=replace(stored.update))
        (item,) = (await Explaining(store, 1_500).explain("ada", "told"))["left_out"]["items"]
        assert (item["content"], item["state"]) == (None, "deleted")
