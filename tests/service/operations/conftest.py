"""A database of a test's own, for tests that watch what the service asks of MongoDB."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from pymongo import MongoClient

from tests.service.support.mongo_commands import Json, watch


@pytest.fixture
def database(mongodb_url: str) -> Iterator[str]:
    """Yield the name of a database of the test's own, which is watched and dropped afterwards."""
    name = f"recollect_test_{uuid4().hex[:12]}"
    yield name
    watch.database = ""
    with MongoClient[Json](mongodb_url) as client:
        client.drop_database(name)
