from pathlib import Path

import pytest
from typing_extensions import override

from recollect.memory.background.short_calls import SHORT_CALLS
from recollect.memory.stores.sqlite import open_sqlite_store
from tests.contracts.store.conftest import Backend
from tests.contracts.store.suite.client_records import ClientRecordsContract
from tests.contracts.store.suite.conversations import ConversationsContract
from tests.contracts.store.suite.counts import CountsContract
from tests.contracts.store.suite.documents import LibraryContract
from tests.contracts.store.suite.embedder_choices import EmbedderChoicesContract
from tests.contracts.store.suite.erasures import ErasuresContract
from tests.contracts.store.suite.explained_turns import ExplainedTurnsContract
from tests.contracts.store.suite.fact_pages import FactPagesContract
from tests.contracts.store.suite.facts import FactsContract
from tests.contracts.store.suite.filter_terms import FilterTermsContract, Keyed
from tests.contracts.store.suite.imports import ImportsContract
from tests.contracts.store.suite.kept_turns import KeptTurnsContract
from tests.contracts.store.suite.keys import KeysContract
from tests.contracts.store.suite.notes import NotesContract
from tests.contracts.store.suite.queue import QueueContract
from tests.contracts.store.suite.recommits import RecommitsContract
from tests.contracts.store.suite.recorded_hits import RecordedHitsContract
from tests.contracts.store.suite.said_again import SaidAgainContract
from tests.contracts.store.suite.sessions import SessionsContract
from tests.contracts.store.suite.thread_records import ThreadRecordsContract
from tests.contracts.store.suite.timeline import TimelineContract
from tests.contracts.store.suite.updates import UpdatesContract
from tests.contracts.store.suite.whole_user import WholeUserContract


class Sqlite:
    """As the service reads: short reads on the event loop. Tests of the library read in the thread."""

    @pytest.fixture(autouse=True)
    def on_loop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SHORT_CALLS, "on_loop", True)

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


class TestSaidAgain(Sqlite, SaidAgainContract):
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


class TestEmbedderChoices(Sqlite, EmbedderChoicesContract):
    pass


class TestSessions(Sqlite, SessionsContract):
    pass


class TestKeys(Sqlite, KeysContract):
    pass


class TestClientRecords(Sqlite, ClientRecordsContract):
    pass


class TestErasures(Sqlite, ErasuresContract):
    pass


class TestFilterTerms(FilterTermsContract):
    @pytest.fixture
    @override
    def keyed(self, tmp_path: Path) -> Keyed:
        return lambda keys: open_sqlite_store(tmp_path / "documents.db", keys=keys)
