from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from pymongo import AsyncMongoClient

from recollect.memory.ports.store import Store

Backend = Callable[[], AbstractAsyncContextManager[Store]]
"""Opens the same documents each time; every implementation's test class has a fixture `backend` of this type."""


class MongoDatabase(NamedTuple):
    url: str
    name: str


@pytest.fixture
async def store(backend: Backend) -> AsyncGenerator[Store]:
    async with backend() as opened:
        yield opened


@pytest.fixture
async def mongo_database(mongodb_url: str) -> AsyncGenerator[MongoDatabase]:
    """Yield a database of the test's own, dropped afterwards."""
    name = f"recollect_test_{uuid4().hex[:12]}"
    yield MongoDatabase(mongodb_url, name)
    async with AsyncMongoClient[dict[str, Any]](mongodb_url) as client:
        await client.drop_database(name)
