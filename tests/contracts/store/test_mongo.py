import pytest
from typing_extensions import override

from recollect.memory.stores.mongo import open_mongo_store
from tests.contracts.store.conftest import Backend, MongoDatabase
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


class Mongo:
    @pytest.fixture
    def backend(self, mongo_database: MongoDatabase) -> Backend:
        return lambda: open_mongo_store(mongo_database.url, mongo_database.name)


class TestConversations(Mongo, ConversationsContract):
    more_than_a_batch = 110


class TestUpdates(Mongo, UpdatesContract):
    longer_than_a_batch = 110


class TestFacts(Mongo, FactsContract):
    pass


class TestFactPages(Mongo, FactPagesContract):
    pass


class TestSaidAgain(Mongo, SaidAgainContract):
    pass


class TestRecommits(Mongo, RecommitsContract):
    pass


class TestNotes(Mongo, NotesContract):
    pass


class TestCounts(Mongo, CountsContract):
    pass


class TestRecordedHits(Mongo, RecordedHitsContract):
    pass


class TestExplainedTurns(Mongo, ExplainedTurnsContract):
    pass


class TestKeptTurns(Mongo, KeptTurnsContract):
    more_than_a_batch = 110


class TestTimeline(Mongo, TimelineContract):
    many = 500


class TestImports(Mongo, ImportsContract):
    many = 110


class TestThreadRecords(Mongo, ThreadRecordsContract):
    pass


class TestLibrary(Mongo, LibraryContract):
    pass


class TestQueue(Mongo, QueueContract):
    pass


class TestWholeUser(Mongo, WholeUserContract):
    more_than_a_batch = 110


class TestEmbedderChoices(Mongo, EmbedderChoicesContract):
    pass


class TestSessions(Mongo, SessionsContract):
    pass


class TestKeys(Mongo, KeysContract):
    pass


class TestClientRecords(Mongo, ClientRecordsContract):
    pass


class TestErasures(Mongo, ErasuresContract):
    pass


class TestFilterTerms(FilterTermsContract):
    filters = 60

    @pytest.fixture
    @override
    def keyed(self, mongo_database: MongoDatabase) -> Keyed:
        return lambda keys: open_mongo_store(mongo_database.url, mongo_database.name, keys=keys)
