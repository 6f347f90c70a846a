"""Real embedded stores for the tests of the rules that need them; a test file may have its own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from tests.domain.support.indexed import open_documents, open_index


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with open_documents(tmp_path) as opened:
        yield opened


@pytest.fixture
async def index(tmp_path: Path) -> AsyncGenerator[VectorIndex]:
    async with open_index(tmp_path) as opened:
        yield opened
