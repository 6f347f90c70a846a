from pathlib import Path

import pytest

from recollect.memory.stores.sqlite import open_sqlite_store
from tests.contracts.store.client_records import ClientRecordsContract
from tests.contracts.store.conftest import Backend
from tests.contracts.store.conversations import ConversationsContract
from tests.contracts.store.counts import CountsContract
from tests.contracts.store.documents import LibraryContract
from tests.contracts.store.erasures import ErasuresContract
from tests.contracts.store.explained_turns import ExplainedTurnsContract
from tests.contracts.store.fact_pages import FactPagesContract
from tests.contracts.store.facts import FactsContract
from tests.contracts.store.imports import ImportsContract
from tests.contracts.store.kept_turns import KeptTurnsContract
from tests.contracts.store.keys import KeysContract
from tests.contracts.store.notes import NotesContract
from tests.contracts.store.queue import QueueContract
from tests.contracts.store.recommits import RecommitsContract
from tests.contracts.store.recorded_hits import RecordedHitsContract
from tests.contracts.store.sessions import SessionsContract
from tests.contracts.store.thread_records import ThreadRecordsContract
from tests.contracts.store.timeline import TimelineContract
from tests.contracts.store.updates import UpdatesContract
from tests.contracts.store.whole_user import WholeUserContract


class Sqlite:
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        return lambda: open_sqlite_store(tmp_path / "documents.db")


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


class TestRecordedHits(Sqlite, RecordedHitsContract):
    pass


class TestExplainedTurns(Sqlite, ExplainedTurnsContract):
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


class TestSessions(Sqlite, SessionsContract):
    pass


class TestKeys(Sqlite, KeysContract):
    pass


class TestClientRecords(Sqlite, ClientRecordsContract):
    pass


class TestErasures(Sqlite, ErasuresContract):
    pass
