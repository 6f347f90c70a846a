"""Turns and facts to store."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.memory.ports.store import Store
from recollect.memory.values.decision import Change, Proposal, RefusedProposal
from recollect.memory.values.fact import Ended, Fact
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.preview import Preview
from recollect.memory.values.turn import Exchange, Message
from recollect.memory.values.update import Left, PreviousAnswer, Step, Undo, Update, not_owed

NOW = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=15)

NASTY_IDS = ("a:b@c.-_", "x" * 128, "..a", "-", "A", "a", "0", "None", "user@example.com:1")
NASTY_TEXTS = (
    "",
    " \n\t ",
    "naïve café \u0130\u0131 ß",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "\u202eשלום\u202c مرحبا",  # noqa: RUF001  # the letters are Hebrew
    "'; DROP TABLE messages; --",
    '{"$ne": null} {"$where": "1"}',
    "100% _ \\ \" ' ` ${x} %s {0}",
    "\x01\x1f\x7f\ufffd\uffff",
    "e\u0301 is not \u00e9",
)
NASTY_METADATA: Mapping[str, Any] = {
    "a.b": {"$set": {"c.d": [1, [2, [3, {"$x.y": None}]]]}},
    "$where": "1",
    "": "empty key",
    "emoji \U0001f600": True,
    "numbers": [0, -1, 1.5, 2**53, 1e-9],
    "none": None,
    "list": [],
    "dict": {},
}


def asked(turn_id: str = "turn1", *, user_id: str = "ada", thread_id: str = "t1", content: str = "Hello.") -> Message:
    return Message(user_id, thread_id, turn_id, "user", content, NOW)


def answer(message: Message, content: str = "Hi!") -> Message:
    return replace(
        message,
        role="assistant",
        content=content,
        name=None,
        metadata={},
        position=message.position + 1,
        created_at=message.created_at + SECOND,
    )


async def finish(
    store: Store, turn_id: str, *, user_id: str = "ada", thread_id: str = "t1", update: Update | None = None
) -> Exchange:
    message = await store.conversations.accept(asked(turn_id, user_id=user_id, thread_id=thread_id))
    reply = answer(message)
    assert await store.conversations.commit(reply, result={"model": "m"}, update=update or not_owed("disabled"))
    return Exchange(message, reply)


def indexed() -> Update:
    return Update(steps={"facts": Step(), "index": Step(status="done")})


def full_update() -> Update:
    step = Step(reason="outage \u2713", tries=3, attempts=2, due_at=NOW + timedelta(microseconds=7))
    return Update(
        steps={"facts": step, "index": Step(status="done"), "summary": Step(status="skipped", reason="short")},
        model="m/1",
        planned=True,
        changes=(
            Change("add", "f1", "a.b$", None, "Ünï", "quote", None),
            Change("keep", "f2", None, "x", "x", "", "reason"),
        ),
        refused=(RefusedProposal("weird", None, None, "v", "e", "no evidence"),),
        proposals=(
            Proposal("add", "k", "v", "s", "e", 3, "thread", 0.25, ("x", "y"), "tool"),
            Proposal("delete", shown=1, valid_from="2019", valid_to="May"),
        ),
        writes=(
            PlannedWrite(at_ms=1, inserts="f1", ends="f0", key="k", value="v", statement="s", tags=("$a.b",)),
            PlannedWrite(
                at_ms=2, confirms="f2", scope="thread", source="tool", evidence="e", importance=1.0, replaces="x"
            ),
            PlannedWrite(at_ms=3, inserts="f3", status="proposed", proposes="update", valid_from_ms=-1, valid_to_ms=9),
        ),
        learned=2,
        wanted_model="other/1",
        undo=Undo(
            at=NOW + timedelta(microseconds=3),
            force=True,
            done=True,
            changes=(Change("delete", "f1", "k", "Ünï", None, ""),),
            left=(Left("f2", None, "changed since"),),
        ),
        earlier=PreviousAnswer(
            at=NOW - timedelta(microseconds=4),
            writes=(PlannedWrite(at_ms=4, inserts="f4", ends="f0", tags=("$c.d",)),),
            fact_ids=("f4", "f5"),
            done=True,
        ),
        anew=True,
        preview=Preview(
            id="p1",
            at=NOW + timedelta(microseconds=5),
            model="m/2",
            proposals=(Proposal("update", "k", "Ünï", None, "e", 1, tags=("$a.b",)),),
            named=("f0",),
            changes=(Change("update", "f6", "k", "v", "Ünï", "e"),),
            writes=(PlannedWrite(at_ms=5, inserts="f6", ends="f0", key="k", value="Ünï", statement="s"),),
            refused=(RefusedProposal("delete", "f1", None, None, "", "learning again deletes nothing"),),
        ),
    )


def failed(reason: str = "x") -> Update:
    return Update(steps={"facts": Step(status="failed", reason=reason), "index": Step(status="done")})


def fact(fact_id: str = "f1", *, user_id: str = "ada", age: int = 0, **changes: Any) -> Fact:
    """Return a fact `age` seconds older than NOW."""
    then = NOW - age * SECOND
    made = Fact(fact_id, user_id, "name", "Ada", "The user's name is Ada.", then, then, then, then)
    return replace(made, **changes)


def superseded(fact_id: str, *, at: datetime = NOW, valid_to: datetime | None = None, **changes: Any) -> Fact:
    """Return a fact that a turn ended at `at`, valid until `valid_to` (None: until `at`)."""
    return fact(fact_id, ended=Ended("turn", at, "turn2"), valid_to=valid_to or at, **changes)
