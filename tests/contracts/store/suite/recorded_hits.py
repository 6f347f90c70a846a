"""Checks what turns recorded of what is deleted is blank, whoever recalled it and whenever the turn is stored."""

import json
from collections.abc import Mapping
from typing import Any

from recollect.memory.ports.store import Store
from recollect.memory.threads.recorded_hits import RecordedHits
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.turn import Turn
from recollect.memory.values.update import Step, Update, not_owed
from tests.contracts.store.samples import answer, asked, finish

PENDING = Update(steps={"facts": Step()})


def hit(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "kind": "episode", "content": f"what {name} said", "score": 0.5, "thread_id": None, **fields}


def of_document(name: str, document_id: str) -> dict[str, Any]:
    told = {"id": document_id, "title": f"title of {document_id}", "domain": "d", "source": "s", "page": 2}
    return hit(name, kind="document", document=told)


HITS = [
    hit("m1", thread_id="t2", turn_id="gone"),
    hit("s1", kind="summary", thread_id="t2"),
    hit("f1", kind="fact", thread_id="t2"),
    hit("f2", kind="fact"),
    hit("m2", thread_id="t3", turn_id="other"),
    of_document("p1", "d1"),
    of_document("p2", "d2"),
]


async def recalling(store: Store, turn_id: str, *, user_id: str = "ada", update: Update | None = None) -> Turn:
    """Return a finished turn with these hits."""
    memory: dict[str, Any] = {"window": 0, "facts": {}, "hits": HITS}
    result: dict[str, Any] = {"model": "m", "memory": memory, "trace": [{"id": "m1"}]}
    message = await store.conversations.accept(asked(turn_id, user_id=user_id))
    update = update or not_owed("disabled")
    assert await store.conversations.commit(answer(message), result=result, update=update)
    return Turn(message, answer(message), result, update)


async def recorded(store: Store, turn_id: str, user_id: str = "ada") -> Mapping[str, Any]:
    turn = await store.conversations.turn(user_id=user_id, turn_id=turn_id)
    assert turn is not None
    assert turn.result is not None
    return turn.result


def told(result: Mapping[str, Any]) -> set[str]:
    """Return the hits that still have text."""
    hits = result["memory"]["hits"]
    assert [one["id"] for one in hits] == [one["id"] for one in HITS], "ids and scores stay"
    for one in hits:
        assert one["content"] or not any(word in json.dumps(one) for word in ("title of", "what "))
    return {one["id"] for one in hits if one["content"]}


class RecordedHitsContract:
    async def test_a_deleted_thread_is_blank_in_the_users_turns_alone(self, store: Store) -> None:
        await recalling(store, "one")
        await recalling(store, "two", update=PENDING)
        await recalling(store, "one", user_id="bob")
        await RecordedHits(store).blank_thread(Scope("ada", "t2"))
        for turn_id in ("one", "two"):
            result = await recorded(store, turn_id)
            assert told(result) == {"f2", "m2", "p1", "p2"}
            assert result["trace"] == [{"id": "m1"}]
        assert len(told(await recorded(store, "one", "bob"))) == len(HITS)
        turn = await store.conversations.turn(user_id="ada", turn_id="two")
        assert turn is not None
        assert turn.update == PENDING

    async def test_a_deleted_document_is_blank_with_its_title(self, store: Store) -> None:
        await recalling(store, "one")
        await RecordedHits(store).blank_document("ada", "d1")
        assert told(await recorded(store, "one")) == {one["id"] for one in HITS} - {"p1"}

    async def test_a_global_document_is_blank_in_everybodys_turns(self, store: Store) -> None:
        for user_id in ("ada", "bob"):
            await recalling(store, "one", user_id=user_id)
        await RecordedHits(store).blank_document(GLOBAL_USER, "d2")
        for user_id in ("ada", "bob"):
            assert told(await recorded(store, "one", user_id)) == {one["id"] for one in HITS} - {"p2"}

    async def test_a_turn_that_is_stored_later_is_blank_of_what_went_meanwhile(self, store: Store) -> None:
        await finish(store, "other", thread_id="t3")
        turn = await recalling(store, "one")
        await RecordedHits(store).settle(turn)
        assert told(await recorded(store, "one")) == {"f2", "m2"}
