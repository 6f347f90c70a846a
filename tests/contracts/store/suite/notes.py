"""Facts without a key, newest first, in pages."""

from collections.abc import Sequence
from typing import Any

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import GLOBAL_USER
from tests.contracts.store.samples import NOW, SECOND, fact, superseded


def note(fact_id: str, *, age: int = 0, **changes: Any) -> Fact:
    return fact(fact_id, age=age, key=None, **changes)


# Newest first.
STORED: Sequence[Fact] = (
    note("tie b", tags=("x", '"home"')),
    note("tie a", source="manual"),
    note("new", age=5, pinned=True, source="manual", tags=("x",)),
    fact("keyed", age=10, tags=("x",)),
    note("soon", age=15, valid_from=NOW + SECOND),
    superseded("was", age=20, key=None, valid_to=NOW - SECOND),
    superseded("still", age=25, key=None, valid_to=NOW + SECOND, tags=("x",)),
    note("waits", age=30, status="proposed"),
    note("forgotten", age=31, status="forgotten"),
    note("here", age=35, scope="thread", thread_id="t1"),
    note("taught", age=40, thread_id="t1", turn_id="turn1"),
)


class NotesContract:
    @pytest.mark.parametrize(
        ("tag", "shown"),
        [
            (None, ["tie b", "tie a", "new", "still", "taught"]),
            ("x", ["tie b", "new", "still"]),
            ('"home"', ["tie b"]),
            ("home", []),
        ],
    )
    async def test_pages_join_up(self, store: Store, tag: str | None, shown: list[str]):
        for each in (
            *STORED[::-1],
            note("bobs", user_id="bob", tags=("x",)),
            note("shared", user_id=GLOBAL_USER, scope="global"),
        ):
            assert await store.facts.insert(each)
        notes = store.facts.notes
        assert [each.id for each in await notes("ada", at=NOW, tag=tag, limit=99)] == shown
        for size in (1, 2):
            found: list[Fact] = []
            while batch := await notes("ada", at=NOW, tag=tag, limit=size, after=found[-1].id if found else None):
                assert len(batch) <= size
                found += batch
            assert [each.id for each in found] == shown
        assert await notes("ada", at=NOW, tag=tag, limit=0) == []
        assert await notes("eve", at=NOW, tag=tag, limit=9) == []

    async def test_a_page_goes_on_behind_what_holds_no_more(self, store: Store):
        given = [note(f"n{number}", age=number) for number in range(4)]
        for each in given:
            assert await store.facts.insert(each)
        assert await store.facts.replace(given[1].revised(at=NOW, status="forgotten"), revision=1)
        notes = store.facts.notes
        assert await notes("ada", at=NOW, limit=1, after="n1") == [given[2]]
        assert await notes("ada", at=NOW, limit=9, after="missing") == []
