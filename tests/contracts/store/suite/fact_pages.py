from collections.abc import Sequence
from dataclasses import replace

import pytest

from recollect.memory.ports.facts import FactFilter
from recollect.memory.ports.store import Store
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import GLOBAL_USER
from tests.contracts.store.samples import NOW, SECOND, fact, superseded

LATER = NOW + 2 * SECOND

# Oldest first; what each of the filters below shows is named by these ids.
STORED: tuple[Fact, ...] = (
    fact("first", age=90, tags=("home", "x"), source="manual"),
    superseded("was", age=80, tags=("home",), valid_to=NOW - 5 * SECOND, at=NOW),
    replace(superseded("still", age=70, valid_to=NOW + SECOND), key=None),
    fact("until", age=60, valid_to=NOW),
    fact("soon", age=50, valid_from=NOW + SECOND),
    fact("here", age=40, scope="thread", thread_id="t1", tags=("home",), statement="Der Läster."),
    fact("there", age=30, scope="thread", thread_id="t2"),
    fact("wish", age=20, status="proposed", valid_to=NOW - SECOND, tags=("x",)),
    fact("wish here", age=19, status="proposed", scope="thread", thread_id="t1"),
    fact("no", age=15, status="rejected"),
    fact("undone", age=14, status="undone"),
    fact("gone", age=13, status="forgotten"),
    fact("a tie 1", age=10),
    fact("a tie 2", age=10, thread_id="t1"),
    fact("last", key="pet_of_last", statement="Zuletzt LÄST er.", tags=('"home"', "a, ", "b")),
)
FILTERS: dict[str, tuple[FactFilter, str]] = {
    "now": (FactFilter(NOW), "first still ties last"),
    "active": (FactFilter(NOW, status="active"), "first still ties last"),
    "as of now": (FactFilter(LATER, as_of=NOW), "first still ties last"),
    "as of later": (FactFilter(NOW, as_of=LATER), "first soon ties last"),
    "as of before": (FactFilter(NOW, as_of=NOW - 75 * SECOND), "first was"),
    "as of the end": (FactFilter(NOW, as_of=NOW - 5 * SECOND), "first still until ties"),
    "as of the start": (FactFilter(NOW, as_of=NOW - 90 * SECOND), "first"),
    "as of before all": (FactFilter(NOW, as_of=NOW - 91 * SECOND), ""),
    "with thread": (FactFilter(NOW, thread_id="t1"), "first still here ties last"),
    "of thread": (FactFilter(NOW, scope="thread", thread_id="t1"), "here"),
    "of all threads": (FactFilter(NOW, scope="thread"), "here there"),
    "of user": (FactFilter(NOW, scope="user", thread_id="t1"), "first still ties last"),
    "of all": (FactFilter(NOW, scope="global"), ""),
    "tag": (FactFilter(NOW, tag="home"), "first"),
    "tag with thread": (FactFilter(NOW, tag="home", thread_id="t1"), "first here"),
    "tag as of": (FactFilter(NOW, tag="home", as_of=NOW - 10 * SECOND), "first was"),
    "odd tag": (FactFilter(NOW, tag="a, "), "last"),
    "quoted tag": (FactFilter(NOW, tag='"home"'), "last"),
    "no such tag": (FactFilter(NOW, tag="hom"), ""),
    "proposed": (FactFilter(NOW, status="proposed"), "wish"),
    "proposed as of": (FactFilter(NOW, status="proposed", as_of=NOW - 99 * SECOND), "wish"),
    "proposed with thread": (FactFilter(NOW, status="proposed", thread_id="t1"), "wish|wish here"),
    "proposed tag": (FactFilter(NOW, status="proposed", tag="x", thread_id="t1"), "wish"),
    "text": (FactFilter(NOW, text="LÄST"), "last"),
    "text in a key": (FactFilter(NOW, text="pet_of"), "last"),
    "text with thread": (FactFilter(NOW, text="äst", thread_id="t1"), "here last"),
    "text that looks like a pattern": (FactFilter(NOW, text=".*"), ""),
    "text and tag": (FactFilter(NOW, text="läst", tag="home"), ""),
    "source": (FactFilter(NOW, source="manual"), "first"),
    "notes alone": (FactFilter(NOW, keyed=False), "still"),
    "keyed alone": (FactFilter(NOW, keyed=True, source="turn"), "ties last"),
    "rejected": (FactFilter(NOW, status="rejected"), "no"),
    "undone": (FactFilter(NOW, status="undone"), "undone"),
}


def named(names: str) -> list[str]:
    if "|" in names:
        return names.split("|")
    return [each for name in names.split() for each in (["a tie 1", "a tie 2"] if name == "ties" else [name])]


async def insert(store: Store, facts: Sequence[Fact]) -> None:
    for each in facts:
        assert await store.facts.insert(each)


class FactPagesContract:
    @pytest.mark.parametrize("name", FILTERS)
    async def test_a_filter_shows_what_it_says_in_pages_that_join_up(self, store: Store, name: str):
        shown, expected = FILTERS[name]
        await insert(store, STORED[::-1])
        await insert(store, [fact("bobs", user_id="bob", tags=("home", "x"))])
        await insert(store, [fact("shared", user_id=GLOBAL_USER, scope="global", tags=("home", "x"))])
        page = store.facts.page
        assert [each.id for each in await page("ada", shown, limit=99)] == named(expected)
        for size in (1, 2):
            found: list[Fact] = []
            while batch := await page("ada", shown, limit=size, after=found[-1].id if found else None):
                assert len(batch) <= size
                found += batch
            assert [each.id for each in found] == named(expected)
            newest = replace(shown, newest_first=True)
            found = []
            while batch := await page("ada", newest, limit=size, after=found[-1].id if found else None):
                found += batch
            assert [each.id for each in found] == named(expected)[::-1]
        assert await page("ada", shown, limit=0) == []
        assert await page("eve", shown, limit=9) == []

    async def test_global_facts_are_a_users_of_their_own(self, store: Store):
        shared = fact("shared", user_id=GLOBAL_USER, scope="global", tags=("x",))
        await insert(store, [shared, fact()])
        page = store.facts.page
        for shown in (FactFilter(NOW), FactFilter(NOW, scope="global"), FactFilter(NOW, tag="x", as_of=LATER)):
            assert await page(GLOBAL_USER, shown, limit=9) == [shared]
        assert await page(GLOBAL_USER, FactFilter(NOW, scope="user"), limit=9) == []

    async def test_a_page_goes_on_behind_a_fact_that_has_left_the_filter(self, store: Store):
        given = [fact(f"f{number}", age=9 - number) for number in range(4)]
        await insert(store, given)
        assert await store.facts.replace(given[1].revised(at=NOW, status="forgotten"), revision=1)
        page = store.facts.page
        assert await page("ada", FactFilter(NOW), limit=1, after="f1") == [given[2]]
        assert await page("ada", FactFilter(NOW), limit=9, after="missing") == []
        await insert(store, [fact("bobs", user_id="bob", age=20)])
        assert await page("ada", FactFilter(NOW), limit=9, after="bobs") == []
