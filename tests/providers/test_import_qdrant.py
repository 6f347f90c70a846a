"""Another agent's Qdrant collections as a source."""

from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID, uuid5

import pytest
from qdrant_client import AsyncQdrantClient, models

from recollect.memory.transfer.line_source import SourceHoldings, SourceLine, Unreadable
from recollect.memory.transfer.sources.qdrant import names_of_collection, read_qdrant
from recollect.memory.values.errors import InvalidRequest, StoreUnavailable

_NAMESPACE = UUID(int=1)


@pytest.fixture
async def client() -> AsyncGenerator[AsyncQdrantClient]:
    made = AsyncQdrantClient(":memory:")
    yield made
    await made.close()


async def keep(client: AsyncQdrantClient, collection: str, *payloads: dict[str, Any]) -> None:
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    await client.create_collection(collection, vectors_config=size)
    points = [
        models.PointStruct(id=str(uuid5(_NAMESPACE, f"{collection}{number}")), vector=[0.1, 0.2], payload=payload)
        for number, payload in enumerate(payloads)
    ]
    await client.upsert(collection, points)


async def read(client: AsyncQdrantClient, user: str | None = None) -> list[SourceLine]:
    return [line async for line in read_qdrant(client, user_id=user)]


async def test_turns_of_all_memory_collections_are_read_in_order(client: AsyncQdrantClient) -> None:
    home = {"user_id": "ada", "thread_id": "t1"}
    await keep(
        client,
        "mem_ada_t1",
        {"page_content": "User: Second\nAssistant: Two", "metadata": {**home, "timestamp": "2025-01-02T00:00:00"}},
        {"page_content": "User: First\nAssistant: One", "metadata": {**home, "timestamp": "2025-01-01T00:00:00"}},
    )
    await keep(client, "mem_eve_t2", {"text": "Hi", "role": "human", "created_at": 1_700_000_000})
    await keep(client, "recollect__x", {"page_content": "User: No\nAssistant: No", "metadata": home})
    lines = await read(client)
    assert [line.number for line in lines] == [1, 2, 3, 4, 5]
    said = [line.said for line in lines if isinstance(line.said, dict)]
    assert [(one["user_id"], one["thread_id"], one["role"], one["content"]) for one in said] == [
        ("ada", "t1", "user", "First"),
        ("ada", "t1", "assistant", "One"),
        ("ada", "t1", "user", "Second"),
        ("ada", "t1", "assistant", "Two"),
        ("eve", "t2", "user", "Hi"),
    ]
    assert len({one["message_id"] for one in said}) == 5
    assert await read(client) == lines


async def test_collections_are_named_by_whether_they_are_read(client: AsyncQdrantClient) -> None:
    user = "64b7f1c2a1b2c3d4e5f60718"
    payload = {"page_content": "User: Hi\nAssistant: Ho", "metadata": {"timestamp": "2025-01-02T00:00:00"}}
    await keep(client, f"mem_{user}_talk_of_2025", payload)
    await keep(client, "papers", {"text": "E = mc2"})
    await keep(client, "recollect__x", {"page_content": "User: No\nAssistant: No"})
    holdings = SourceHoldings()
    lines = [line.said async for line in read_qdrant(client, user_id=None, holdings=holdings, own="recollect")]
    assert {(line["user_id"], line["thread_id"]) for line in lines if isinstance(line, dict)} == {
        (user, "talk_of_2025")
    }
    assert (holdings.read, holdings.skipped) == ([f"mem_{user}_talk_of_2025"], ["papers"])


async def test_more_points_than_a_page_are_read(client: AsyncQdrantClient) -> None:
    await keep(
        client,
        "mem_ada_t1",
        *({"text": f"m{number}", "metadata": {"role": "user", "timestamp": number}} for number in range(1_203)),
    )
    lines = await read(client)
    assert [line.said["content"] for line in lines if isinstance(line.said, dict)] == [f"m{n}" for n in range(1_203)]


async def test_a_name_that_could_be_read_in_two_ways_needs_the_user(client: AsyncQdrantClient) -> None:
    await keep(client, "mem_user_1_session_2", {"text": "Hi", "role": "user", "timestamp": 1})
    (line,) = await read(client)
    assert isinstance(line.said, Unreadable)
    (line,) = await read(client, "user_1")
    assert isinstance(line.said, dict)
    assert (line.said["user_id"], line.said["thread_id"]) == ("user_1", "session_2")


@pytest.mark.parametrize(
    ("name", "user", "expected"),
    [
        ("mem_a_b", None, ("a", "b")),
        ("mem_a_b_c", None, None),
        ("mem_a_b_c", "a", ("a", "b_c")),
        ("mem_a_b_c", "a_b", ("a_b", "c")),
        ("mem_a", None, None),
        ("mem__b", None, None),
    ],
)
def test_names_are_told_apart_where_they_can_be(name: str, user: str | None, expected: tuple[str, str] | None) -> None:
    assert names_of_collection(name, user_id=user) == expected


async def test_a_server_that_cannot_be_read_is_a_sentence_without_its_key() -> None:
    for url, error in (
        ("http://:secret@127.0.0.1:1", StoreUnavailable),
        ("qdrant://secret@127.0.0.1:1", StoreUnavailable),
        ("http://:secret@127.0.0.1:bad", InvalidRequest),
        ("http://", InvalidRequest),
    ):
        with pytest.raises(error) as caught:
            await anext(read_qdrant(url, user_id=None))
        assert "secret" not in str(caught.value)
