from pathlib import Path

import pytest

from memory.stores.sqlite import open_sqlite_documents
from tests.contracts.documents.conftest import Backend
from tests.contracts.documents.conversations import ConversationsContract
from tests.contracts.documents.counts import CountsContract
from tests.contracts.documents.erasures import ErasuresContract
from tests.contracts.documents.fact_pages import FactPagesContract
from tests.contracts.documents.facts import FactsContract
from tests.contracts.documents.imports import ImportsContract
from tests.contracts.documents.kept_turns import KeptTurnsContract
from tests.contracts.documents.keys import KeysContract
from tests.contracts.documents.library import LibraryContract
from tests.contracts.documents.notes import NotesContract
from tests.contracts.documents.queue import QueueContract
from tests.contracts.documents.recommits import RecommitsContract
from tests.contracts.documents.thread_records import ThreadRecordsContract
from tests.contracts.documents.timeline import TimelineContract
from tests.contracts.documents.updates import UpdatesContract
from tests.contracts.documents.whole_user import WholeUserContract


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


class TestFactPages(Sqlite, FactPagesContract):
    pass


class TestRecommits(Sqlite, RecommitsContract):
    pass


class TestNotes(Sqlite, NotesContract):
    pass


class TestCounts(Sqlite, CountsContract):
    pass


class TestKeptTurns(Sqlite, KeptTurnsContract):
    pass


class TestTimeline(Sqlite, TimelineContract):
    pass


class TestImports(Sqlite, ImportsContract):
    pass


class TestThreadRecords(Sqlite, ThreadRecordsContract):
    pass


class TestLibrary(Sqlite, LibraryContract):
    pass


class TestQueue(Sqlite, QueueContract):
    pass


class TestWholeUser(Sqlite, WholeUserContract):
    pass


class TestKeys(Sqlite, KeysContract):
    pass


class TestErasures(Sqlite, ErasuresContract):
    pass
