"""Real embedded stores for the tests of the rules that need them; a test file may have its own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from memory.documents import Documents
from memory.vector_index import VectorIndex
from tests.domain.indexed import open_documents, open_index


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncGenerator[Documents]:
    async with open_documents(tmp_path) as opened:
        yield opened


@pytest.fixture
async def index(tmp_path: Path) -> AsyncGenerator[VectorIndex]:
    async with open_index(tmp_path) as opened:
        yield opened
