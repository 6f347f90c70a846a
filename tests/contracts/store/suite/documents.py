import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.document import Document, Holdings, Passage, document_id, passage_id
from recollect.memory.values.scope import GLOBAL_USER, Scope
from tests.contracts.store.conftest import Backend
from tests.contracts.store.samples import NASTY_IDS, NASTY_TEXTS, NOW, SECOND

ADA = Scope("ada")
ADA_T1 = Scope("ada", "t1")
FULL = Document(
    id=document_id("ada", source="file.md", content_hash="c0ffee"),
    user_id="ada",
    title="Zürich \U0001f3d4",
    kind="pdf",
    content_hash="c0ffee",
    created_at=NOW,
    updated_at=NOW + SECOND,
    domain="work",
    source="file.md",
    metadata={"a.b": {"$c": [1, None, "ü"]}},
    status="failed",
    error="No text in it.",
    characters=7,
    pages=3,
    passages=2,
    version=4,
    incoming=5,
    revision=6,
    agent_id="support",
)


def document(source: str = "a", *, user_id: str = "ada", age: int = 0, domain: str | None = None) -> Document:
    return Document(
        id=document_id(user_id, source=source, content_hash="0"),
        user_id=user_id,
        title=source,
        kind="text",
        content_hash="0",
        created_at=NOW - age * SECOND,
        updated_at=NOW - age * SECOND,
        domain=domain,
        source=source,
        incoming=1,
        revision=1,
    )


def passages_of(given: Document, *texts: str, version: int = 1) -> list[Passage]:
    return [
        Passage(
            id=passage_id(given.user_id, given.id, text, 0),
            user_id=given.user_id,
            document_id=given.id,
            version=version,
            place=place,
            text=text,
            created_at=given.created_at,
            page=place + 1,
        )
        for place, text in enumerate(texts)
    ]


async def insert(store: Store, *given: Document) -> None:
    for each in given:
        assert await store.documents.put(each, revision=0)


async def filled(store: Store, given: Document, *texts: str) -> Document:
    """Return the document stored with these passages as its own."""
    await insert(store, given)
    assert await store.documents.passages.add(passages_of(given, *texts))
    named = given.revised(version=1, incoming=0, passages=len(texts))
    assert await store.documents.put(named, revision=given.revision)
    return named


async def text_of(store: Store, given: Document) -> list[str]:
    batches = store.documents.passages.of_document(user_id=given.user_id, document_id=given.id)
    return [passage.text async for batch in batches for passage in batch]


async def indexed_of(store: Store, user_id: str | None = None) -> list[str]:
    found: list[str] = []
    async for batch in store.documents.passages.indexed(user_id=user_id):
        assert 0 < len(batch) <= 500
        found += [passage.text for passage in batch]
    return sorted(found)


def ids_of(documents: Sequence[Document]) -> list[str | None]:
    return [each.source for each in documents]


class LibraryContract:
    async def test_a_document_comes_back_as_it_was_stored(self, store: Store):
        documents = store.documents
        assert await documents.document(user_id="ada", document_id=FULL.id) is None
        await insert(store, FULL)
        assert await documents.document(user_id="ada", document_id=FULL.id) == FULL
        assert await documents.document(user_id="bob", document_id=FULL.id) is None
        assert await documents.by_ids(user_id="ada", document_ids=[FULL.id, "nobody"]) == [FULL]
        assert await documents.by_ids(user_id="ada", document_ids=[]) == []

    @pytest.mark.parametrize("text", NASTY_TEXTS)
    async def test_any_text_comes_back(self, store: Store, text: str):
        given = replace(FULL, title=text, source=text, domain=text, error=text, metadata={text: text})
        await insert(store, given)
        assert await store.documents.document(user_id="ada", document_id=FULL.id) == given
        piece = passages_of(replace(FULL, incoming=5), text, version=5)
        assert await store.documents.passages.add(piece)
        assert await store.documents.put(given.revised(version=5), revision=6)
        assert await text_of(store, given) == [text]

    @pytest.mark.parametrize("user_id", NASTY_IDS)
    async def test_any_user_may_have_documents(self, store: Store, user_id: str):
        given = await filled(store, document(user_id=user_id), "one")
        assert await store.documents.page(user_id, limit=2) == [given]
        assert await text_of(store, given) == ["one"]

    async def test_a_put_writes_the_whole_header_under_the_revision_that_was_read(self, store: Store):
        documents, given = store.documents, document()
        assert not await documents.put(given, revision=1)
        await insert(store, given, document(user_id="bob"))
        assert not await documents.put(given, revision=0)
        second = given.revised(status="done", title="other")
        assert await documents.put(second, revision=1)
        assert not await documents.put(given.revised(title="late"), revision=1)
        assert await documents.document(user_id="ada", document_id=given.id) == second

    async def test_one_of_many_puts_at_once_wins(self, store: Store):
        given = document()
        await insert(store, given)
        puts = [store.documents.put(given.revised(title=str(number)), revision=1) for number in range(8)]
        assert sum(await asyncio.gather(*puts)) == 1

    async def test_documents_are_listed_newest_first(self, store: Store):
        given = [document(f"d{age}", age=age, domain="x" if age % 2 else None) for age in range(5)]
        await insert(store, *given, document("other", user_id="bob"), document("all", user_id=GLOBAL_USER))
        documents = store.documents
        assert ids_of(await documents.page("ada", limit=3)) == ["d0", "d1", "d2"]
        last = (given[2].created_at, given[2].id)
        assert ids_of(await documents.page("ada", limit=3, before=last)) == ["d3", "d4"]
        assert ids_of(await documents.page("ada", limit=3, domain="x")) == ["d1", "d3"]
        assert ids_of(await documents.page("ada", limit=3, domain="x", before=last)) == ["d3"]
        assert await documents.page("nobody", limit=3) == []
        assert await documents.in_domains("ada", ["x", "y"], limit=9) == [given[1].id, given[3].id]
        assert await documents.in_domains("ada", ["x"], limit=1) == [given[1].id]

    async def test_documents_of_one_time_are_listed_by_their_ids(self, store: Store):
        given = sorted((document(f"d{number}") for number in range(4)), key=lambda each: each.id, reverse=True)
        await insert(store, *given)
        assert await store.documents.page("ada", limit=9) == given
        found = await store.documents.page("ada", limit=9, before=(NOW, given[1].id))
        assert found == given[2:]

    async def test_who_holds_what(self, store: Store):
        documents = store.documents
        assert await documents.is_empty()
        assert await documents.holdings("ada") == Holdings()
        await insert(store, document())
        assert not await documents.is_empty()
        assert await documents.holdings("ada") == Holdings(own=True)
        assert await documents.holdings("bob") == Holdings()
        await insert(store, document("all", user_id=GLOBAL_USER))
        assert await documents.holdings("bob") == Holdings(shared=True)
        assert [await documents.count("ada"), await documents.count("bob"), await documents.count()] == [1, 0, 2]
        assert [user async for batch in store.users() for user in batch] == [GLOBAL_USER, "ada"]

    async def test_what_is_processing_comes_longest_untouched_first(self, store: Store):
        given = [document(f"d{age}", age=age, user_id=f"u{age}") for age in range(3)]
        await insert(store, *given, replace(document("done"), status="done"))
        assert ids_of(await store.documents.processing(limit=2)) == ["d2", "d1"]

    async def test_passages_are_the_documents_once_its_header_names_them(self, store: Store):
        given, passages = document(), store.documents.passages
        await insert(store, given)
        pieces = passages_of(given, "one ", "two ", "three")
        assert await passages.add(pieces)
        assert await passages.add(pieces)
        assert await text_of(store, given) == []
        assert await passages.passages(user_id="ada", passage_ids=[pieces[0].id]) == []
        assert await store.documents.put(given.revised(version=1, incoming=0), revision=1)
        assert await text_of(store, given) == ["one ", "two ", "three"]
        assert await passages.passages(user_id="ada", passage_ids=[pieces[1].id, "x"]) == [pieces[1]]
        assert await passages.passages(user_id="bob", passage_ids=[pieces[1].id]) == []
        assert await passages.passages(user_id="ada", passage_ids=[]) == []

    async def test_nothing_is_added_to_a_document_that_does_not_await_it(self, store: Store):
        given, passages = document(), store.documents.passages
        assert not await passages.add(passages_of(given, "lost"))
        await insert(store, given)
        assert not await passages.add(passages_of(given, "late", version=2))
        assert await passages.outdated(user_id="ada", document_id=given.id, limit=9) == []

    async def test_what_the_index_has_yet_to_hold(self, store: Store):
        passages = store.documents.passages
        given = await filled(store, document(), "one", "two", "three")
        other = await filled(store, document("b"), "four")
        assert [each.text for each in await passages.owed(user_id="ada", document_id=given.id, limit=2)] == [
            "one",
            "two",
        ]
        assert await passages.count_owed("ada") == 4
        assert await passages.count_owed("ada", document_id=given.id) == 3
        assert await passages.mark_indexed(passages_of(given, "one", "two")) == 2
        assert await passages.mark_indexed([]) == 0
        assert await passages.count_owed("ada", document_id=given.id) == 1
        (left,) = await passages.owed(user_id="ada", document_id=given.id, limit=9)
        assert left.text == "three"
        assert await indexed_of(store) == await indexed_of(store, "ada") == ["one", "two"]
        assert await indexed_of(store, "bob") == []
        assert await passages.count_indexed() == 2
        await store.documents.remove(user_id="ada", document_id=other.id)
        assert await passages.mark_indexed(passages_of(other, "four")) == 0

    async def test_earlier_versions_are_outdated(self, store: Store):
        passages = store.documents.passages
        given = await filled(store, document(), "one", "two")
        awaited = given.revised(incoming=2)
        assert await store.documents.put(awaited, revision=given.revision)
        assert await passages.add(passages_of(given, "two", "three", version=2))
        assert await passages.outdated(user_id="ada", document_id=given.id, limit=9) == []
        assert await text_of(store, given) == ["one", "two"]
        assert await store.documents.put(awaited.revised(version=2, incoming=0), revision=awaited.revision)
        assert await text_of(store, given) == ["two", "three"]
        old = await passages.outdated(user_id="ada", document_id=given.id, limit=9)
        assert [each.text for each in old] == ["one", "two"]
        assert await passages.remove(old) == 2
        assert await passages.remove([]) == 0
        assert await passages.outdated(user_id="ada", document_id=given.id, limit=9) == []
        assert await text_of(store, given) == ["two", "three"]

    async def test_a_long_text_comes_in_batches(self, store: Store):
        given = document()
        await insert(store, given)
        texts = [f"passage {number} " for number in range(1_100)]
        pieces = passages_of(given, *texts)
        for start in range(0, len(pieces), 500):
            assert await store.documents.passages.add(pieces[start : start + 500])
        assert await store.documents.put(given.revised(version=1, incoming=0), revision=1)
        assert await text_of(store, given) == texts
        for start in range(0, len(pieces), 500):
            await store.documents.passages.mark_indexed(pieces[start : start + 500])
        assert await indexed_of(store) == sorted(texts)

    async def test_threads_attach_documents(self, store: Store):
        documents = store.documents
        first, second = document("a", age=1), document("b", user_id=GLOBAL_USER)
        await insert(store, first, second)
        assert await documents.attach(ADA_T1, second, at=NOW)
        assert await documents.attach(ADA_T1, first, at=NOW + SECOND)
        assert await documents.attach(Scope("ada", "t2"), first, at=NOW)
        assert not await documents.attach(ADA_T1, first, at=NOW)
        found = await documents.attached(ADA_T1)
        assert [(each.document, each.attached_at) for each in found] == [(second, NOW), (first, NOW + SECOND)]
        assert {thread: len(each) for thread, each in (await documents.attachments("ada")).items()} == {
            "t1": 2,
            "t2": 1,
        }
        assert await documents.attached(Scope("bob", "t1")) == []
        assert await documents.detach(ADA_T1, document_id=second.id)
        assert not await documents.detach(ADA_T1, document_id=second.id)
        assert ids_of([each.document for each in await documents.attached(ADA_T1)]) == ["a"]

    async def test_a_removed_document_is_nowhere(self, store: Store):
        documents = store.documents
        given, other = await filled(store, document(), "one"), await filled(store, document("b"), "two")
        await documents.attach(ADA_T1, given, at=NOW)
        assert await documents.remove(user_id="ada", document_id=given.id)
        assert not await documents.remove(user_id="ada", document_id=given.id)
        assert await documents.page("ada", limit=9) == [other]
        assert await documents.attached(ADA_T1) == []
        assert await text_of(store, given) == []
        assert await documents.passages.outdated(user_id="ada", document_id=given.id, limit=9) == []

    async def test_deleting_a_thread_takes_its_attachments_alone(self, store: Store):
        documents, given = store.documents, document()
        await insert(store, given)
        await documents.attach(ADA_T1, given, at=NOW)
        await documents.attach(Scope("ada", "t2"), given, at=NOW)
        assert await documents.delete(ADA_T1) == 1
        assert await documents.attached(ADA_T1) == []
        assert len(await documents.attached(Scope("ada", "t2"))) == 1
        assert await documents.count("ada") == 1

    async def test_deleting_a_user_takes_all(self, store: Store):
        documents = store.documents
        given, others = await filled(store, document(), "one"), await filled(store, document(user_id="b"), "2")
        shared = document("all", user_id=GLOBAL_USER)
        await insert(store, shared)
        for each in (given, shared):
            await documents.attach(ADA_T1, each, at=NOW)
        await documents.attach(Scope("b", "t1"), shared, at=NOW)
        assert await documents.delete(ADA) == 1
        assert await documents.delete(ADA) == 0
        assert await documents.attached(ADA_T1) == []
        assert len(await documents.attached(Scope("b", "t1"))) == 1
        assert await documents.page("b", limit=9) == [others]
        assert await text_of(store, others) == ["2"]
        assert await documents.passages.outdated(user_id="ada", document_id=given.id, limit=9) == []
        assert await documents.count() == 2

    async def test_all_survives_a_reopening(self, backend: Backend):
        async with backend() as store:
            given = await filled(store, document(), "one", "two")
            await store.documents.attach(ADA_T1, given, at=NOW)
        async with backend() as store:
            assert await store.documents.page("ada", limit=9) == [given]
            assert await text_of(store, given) == ["one", "two"]
            assert len(await store.documents.attached(ADA_T1)) == 1
