from pathlib import Path

import pytest

from memory.stores.sqlite import open_sqlite_documents
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.conversations import ConversationsContract
from tests.contracts.documents.facts import FactsContract
from tests.contracts.documents.threads import ThreadsContract
from tests.contracts.documents.updates import UpdatesContract


class Sqlite:
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return lambda: open_sqlite_documents(tmp_path / "documents.db")


class TestConversations(Sqlite, ConversationsContract):
    pass


class TestUpdates(Sqlite, UpdatesContract):
    pass


class TestFacts(Sqlite, FactsContract):
    pass


class TestThreads(Sqlite, ThreadsContract):
    pass
